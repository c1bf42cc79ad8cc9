// Baseline: what a step needed when somebody last said that this is right. `stowage check` writes
// it and compares with it; people review it in a diff.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/peak_content.h"
#include "traces/result.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::cli {

inline constexpr int kBaselineSchema = 1;

// Which step it is. Another one's baseline is a mistake of the caller.
struct StepIdentity {
  std::string model;  // portable_model(): a plugin by its file's name
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::string dtype;
  std::string autocast;  // empty = none
  std::string optimizer;
  std::string grad_scaler;  // empty = none
  std::int64_t seed = 0;
  bool operator==(const StepIdentity&) const = default;
};

// With what it was run. Bytes of another one are not comparable.
struct MadeWith {
  std::string stowage;
  std::string libtorch;
  std::string device;        // "cpu" or "cuda"
  std::string device_name;   // of a GPU; a CPU's kind changes no bytes
  std::string allocator;     // its configuration
  std::int64_t threads = 0;  // intra-op, on the CPU device, where they change bytes; else 0
  bool deterministic = true;
  std::string plan;         // decisions_hash() of the plan, empty without one
  std::string placement{};  // the memory that the plan ran in, "caching" or "planned"; empty too
  bool operator==(const MadeWith&) const = default;
};

// Over the steady steps: the largest peaks, the median times.
struct StepCost {
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;  // -1 = the device has no such counter
  Bytes host_bytes = 0;
  Nanoseconds stall_ns = -1;  // in a baseline -1 = not kept: it is not judged there
  Nanoseconds step_ns = -1;
  bool operator==(const StepCost&) const = default;
};

struct Baseline {
  StepIdentity step;
  MadeWith made_with;
  StepCost measured;
  report::PeakContent content;
  bool operator==(const Baseline&) const = default;
};

// Steps are known by this text on every machine: of `plugin:DIR/LIB.so:..` and `script:DIR/FILE:..`
// the folder is left out.
[[nodiscard]] std::string portable_model(const std::string& model);

[[nodiscard]] StepIdentity step_identity(const Run& run);
// `plan` and `placement` are made_with's.
[[nodiscard]] MadeWith made_with(const Run& run, const Environment& env, const std::string& plan,
                                 const std::string& placement);

// Error (bad_input, naming the baseline and the field) when it is another step's; `hint` says what
// to do then.
[[nodiscard]] Status check_same_step(const Baseline& baseline, const std::string& file,
                                     const StepIdentity& step, const std::string& hint);

// What makes the two incomparable, one line each: "made with LibTorch 2.10.0, this is 2.11.0".
[[nodiscard]] std::vector<std::string> differences(const MadeWith& then, const MadeWith& now);

}  // namespace stowage::cli
