// A step of two layers, one behind the other, for tests of segments.
#pragma once

#include <string>
#include <vector>

#include "tests/support/micro_trace.h"

namespace stowage::testing {

// Layers "a" and "b", "b" given what "a" returns: each multiplies into a storage that it saves.
struct TwoLayers {
  MicroTrace t;
  StorageId x;
  std::vector<SavedId> saved;

  void layer(const std::string& name, StorageId in, StorageId& out, bool writes = false) {
    const TensorId given = t.view(in);
    t.begin_layer(name);
    t.passed(given);
    t.begin_op("mul");
    t.read(in);
    if (writes) t.write(in);
    saved.push_back(t.pack(in));
    out = t.alloc(100);
    t.end_op();
    t.end_layer(name);
    t.passed(t.view(out));
  }
  Trace finish(bool b_writes = false) {
    x = t.alloc(100);
    StorageId y;
    StorageId z;
    layer("a", x, y);
    t.let_go(x);
    layer("b", y, z, b_writes);
    t.let_go(y);
    t.backward();
    t.drop(t.unpack(saved[1]));
    t.free(y);
    t.drop(t.unpack(saved[0]));
    t.free(x);
    t.free(z);
    return t.finish();
  }
};

}  // namespace stowage::testing
