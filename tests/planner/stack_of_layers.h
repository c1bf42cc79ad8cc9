// A made-up step of equal layers, for tests of the planner.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/micro_trace.h"
#include "traces/trace.h"

namespace stowage::planner {

// A stack of `layers` layers, each saving 1 MB (1 ms each way) and computing for `forward` ns,
// twice that in backward; a temporary of 1 MB lives at the end of forward.
inline Trace stack(int layers, Nanoseconds forward) {
  testing::MicroTrace m;
  std::vector<StorageId> storages;
  std::vector<SavedId> saved;
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    m.begin_layer(name);
    m.begin_op("aten::mm");
    m.run(forward);
    storages.push_back(m.alloc(1'000'000));
    saved.push_back(m.pack(m.view(storages.back())));
    m.end_op();
    m.let_go(storages.back());
    m.end_layer(name);
  }
  m.begin_op("aten::loss");
  m.run(forward);
  const StorageId temporary = m.alloc(1'000'000);
  m.end_op();
  m.free(temporary);
  m.backward();
  for (int i = layers; i-- > 0;) {
    const std::string name = "layers." + std::to_string(i);
    m.begin_layer_backward(name);
    m.begin_op("aten::mm_backward");
    const UnpackId unpack = m.unpack(saved[static_cast<std::size_t>(i)]);
    m.run(2 * forward);
    m.end_op();
    m.drop(unpack);
    m.free(storages[static_cast<std::size_t>(i)]);
    m.end_layer_backward(name);
  }
  return m.finish();
}

}  // namespace stowage::planner
