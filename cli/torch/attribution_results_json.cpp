#include "cli/torch/attribution_results_json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/json_pieces_json.h"
#include "cli/torch/results_json.h"

namespace stowage::cli {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;

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

std::string length_and_header(const OrderedJson& header) {
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that tensors are aligned
  std::string bytes;
  for (std::uint64_t length = text.size(), i = 0; i < kLengthBytes; ++i, length >>= 8U) {
    bytes += static_cast<char>(length & 0xffU);
  }
  return bytes + text;
}

struct Parsed {
  OrderedJson header;
  std::string_view data;
};

// Of a file that length_and_header() began.
Parsed parsed(std::string_view file) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(file.at(i))) << (8U * i);
  }
  return {OrderedJson::parse(file.substr(kLengthBytes, length)),
          file.substr(kLengthBytes + length)};
}

std::string_view bytes_of(const Parsed& file, const std::string& name) {
  const OrderedJson& place = file.header.at(name).at("data_offsets");
  const auto begin = place.at(0).get<std::size_t>();
  return file.data.substr(begin, place.at(1).get<std::size_t>() - begin);
}

std::string concatenation(const std::vector<Parsed>& files) {
  OrderedJson header;
  std::string data;
  for (const auto& [name, first] : files.front().header.items()) {
    const std::size_t begin = data.size();
    std::int64_t rows = 0;
    for (const Parsed& each : files) {
      const OrderedJson& shape = each.header.at(name).at("shape");
      rows += shape.empty() ? 1 : shape.at(0).get<std::int64_t>();  // a scalar is a row
      data += bytes_of(each, name);
    }
    OrderedJson whole = first;
    if (whole.at("shape").empty()) whole.at("shape") = OrderedJson::array({0});
    whole.at("shape").at(0) = rows;
    whole.at("data_offsets") = {begin, data.size()};
    header[name] = std::move(whole);
  }
  return length_and_header(header) + data;
}

}  // namespace

Result<std::string> safetensors_of(const std::vector<executor::NamedTensor>& tensors) {
  OrderedJson header;
  std::size_t end = 0;
  for (const executor::NamedTensor& each : tensors) {
    const std::optional<std::string> dtype = safetensors_dtype(each.tensor.scalar_type());
    if (!dtype) {
      return Error{ErrorCode::bad_input,
                   "the attributions of '" + each.name +
                       "' are of a dtype that safetensors files do not have",
                   "", "", ""};
    }
    const std::size_t begin = end;
    end += each.tensor.nbytes();
    header[each.name] = {
        {"dtype", *dtype}, {"shape", each.tensor.sizes().vec()}, {"data_offsets", {begin, end}}};
  }
  std::string file = length_and_header(header);
  file.reserve(file.size() + end);
  for (const executor::NamedTensor& each : tensors) {
    file.append(static_cast<const char*>(each.tensor.const_data_ptr()), each.tensor.nbytes());
  }
  return file;
}

Result<std::string> concatenated(const std::vector<std::string>& files) {
  try {
    std::vector<Parsed> all;
    for (const std::string& file : files) all.push_back(parsed(file));
    return concatenation(all);
  } catch (const std::exception& error) {
    return Error{ErrorCode::internal,
                 std::string("the devices' attributions do not go together: ") + error.what(), "",
                 "", ""};
  }
}

std::string attribute_json(const Trace& trace, const std::vector<MeasuredRun>& runs,
                           const std::string& file, const std::string& plan_file,
                           const std::string& output) {
  const Parsed written = parsed(file);
  Json layers = Json::array();
  for (const auto& [name, tensor] : written.header.items()) {
    layers.push_back({{"name", name},
                      {"shape", tensor.at("shape")},
                      {"dtype", tensor.at("dtype")},
                      {"bytes", bytes_of(written, name).size()}});
  }
  Json devices = Json::array();
  for (const MeasuredRun& run : runs) {
    devices.push_back(
        {{"score", run.steps.back().loss}, {"measured", Json::parse(measured_run_to_json(run))}});
  }
  Json json = {{"schema", "stowage-attribute/1"}};
  report::add_step(trace, json);
  json.update({{"layers", layers},
               {"score", devices[0].at("score")},
               {"measured", devices[0].at("measured")},
               {"devices", devices},
               {"files", {{"plan", text_or_null(plan_file)}, {"output", output}}}});
  return dump(json);
}

}  // namespace stowage::cli
