#include "cli/torch/attribution_results_json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/json_pieces_json.h"
#include "cli/torch/results_json.h"

namespace stowage::cli {

namespace {

std::optional<std::string> safetensors_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::string> safetensors_of(const std::vector<executor::NamedTensor>& tensors) {
  nlohmann::ordered_json header;
  std::size_t end = 0;
  for (const executor::NamedTensor& each : tensors) {
    const std::optional<std::string> dtype = safetensors_dtype(each.tensor.scalar_type());
    if (!dtype) {
      return Error{ErrorCode::bad_input,
                   "the attributions of '" + each.name +
                       "' are of a dtype that safetensors files "
                       "do not have",
                   "", "", ""};
    }
    const std::size_t begin = end;
    end += each.tensor.nbytes();
    header[each.name] = {
        {"dtype", *dtype}, {"shape", each.tensor.sizes().vec()}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that tensors are aligned
  std::string file;
  file.reserve(8 + text.size() + end);
  for (std::uint64_t length = text.size(), i = 0; i < 8; ++i, length >>= 8U) {
    file += static_cast<char>(length & 0xffU);
  }
  file += text;
  for (const executor::NamedTensor& each : tensors) {
    file.append(static_cast<const char*>(each.tensor.const_data_ptr()), each.tensor.nbytes());
  }
  return file;
}

std::string attribute_json(const Trace& trace, const MeasuredRun& run,
                           const std::vector<executor::NamedTensor>& attributions,
                           const std::string& plan_file, const std::string& output) {
  Json layers = Json::array();
  for (const executor::NamedTensor& each : attributions) {
    layers.push_back({{"name", each.name},
                      {"shape", each.tensor.sizes().vec()},
                      {"dtype", c10::toString(each.tensor.scalar_type())},
                      {"bytes", each.tensor.nbytes()}});
  }
  Json json = {{"schema", "stowage-attribute/1"}};
  report::add_step(trace, json);
  json.update({{"layers", layers},
               {"score", run.steps.back().loss},
               {"measured", Json::parse(measured_run_to_json(run))},
               {"files", {{"plan", text_or_null(plan_file)}, {"output", output}}}});
  return dump(json);
}

}  // namespace stowage::cli
