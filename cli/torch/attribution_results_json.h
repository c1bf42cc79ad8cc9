// What `stowage attribute` writes: the attributions as a safetensors file, and the answer about
// them.
#pragma once

#include <string>
#include <vector>

#include "cli/torch/measured_run.h"
#include "executor/model.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// The file: 8 bytes with the header's length, a JSON header with each tensor's name, dtype, shape
// and place, the tensors' bytes in this order. `tensors` are dense CPU tensors. Error (bad_input):
// a dtype that the format does not have.
[[nodiscard]] Result<std::string> safetensors_of(const std::vector<executor::NamedTensor>& tensors);

// Each tensor of the first file and those of that name of the others, one behind the other along
// the first dimension. Error (internal): files of different tensors, or none that safetensors_of()
// made.
[[nodiscard]] Result<std::string> concatenated(const std::vector<std::string>& files);

// `stowage attribute --json`, of `runs`, one a device, and of the file that was written; of `trace`
// only what it says of the step counts.
[[nodiscard]] std::string attribute_json(const Trace& trace, const std::vector<MeasuredRun>& runs,
                                         const std::string& file, const std::string& plan_file,
                                         const std::string& output);

}  // namespace stowage::cli
