// A hand-made step whose head runs in micro-batches.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/micro_trace.h"
#include "traces/trace.h"

namespace stowage::testing {

// Says that it does.
inline void run_in(const std::string& segment, std::int32_t count, Trace& trace) {
  trace.micro_batches.segment.emplace_back(trace.strings.size());
  trace.micro_batches.count.push_back(count);
  trace.strings.push_back(segment);
}

// What is saved, of 1000 bytes and 2000 ns, held by the model until backward is over, and a head
// whose output is `rows` times 1000 bytes, in `parts` that take 300 ns each besides 1200 in all.
inline Trace step_with_head(Bytes rows, int parts) {
  MicroTrace m;
  m.begin_layer("body");
  m.run(2000);
  const StorageId body = m.alloc(1000);
  const SavedId saved = m.pack(body);
  m.end_layer("body");
  for (int part = 0; part < parts; ++part) {
    m.begin_layer("head");
    m.run(300 + 1200 / parts);
    const StorageId logits = m.alloc(1000 * rows / parts);
    m.free(logits);
    m.end_layer("head");
  }
  m.backward();
  m.run(2000);
  m.unpack(saved);
  m.free(body);
  Trace trace = m.finish();
  if (parts > 1) run_in("head", parts, trace);
  return trace;
}

inline Trace with_parts(Trace trace, std::initializer_list<Trace> divided) {
  for (const Trace& each : divided) trace.divided.push_back(std::make_shared<const Trace>(each));
  return trace;
}

}  // namespace stowage::testing
