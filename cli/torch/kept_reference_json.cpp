#include "cli/torch/kept_reference_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/json_pieces_json.h"
#include "cli/torch/child_process.h"
#include "cli/torch/results_json.h"
#include "traces/file_io.h"
#include "traces/json_bounds.h"

namespace stowage::cli {

namespace {

constexpr const char* kSchema = "stowage-reference/2";
// Nearly all of it is one string, the digests.
constexpr JsonBounds kReferenceBounds{kMaxFileBytes, 1'000'000, 4096, 32, ""};

Error not_a_reference(const std::string& file, const std::string& what) {
  return {ErrorCode::bad_input, "not a reference that verify kept: " + what, file, "",
          "delete the file; the next verify writes it again"};
}

std::string hex_of(std::string_view bytes) {
  const char* const digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    hex += digits[byte >> 4U];
    hex += digits[byte & 15U];
  }
  return hex;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]);
    const int low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(16 * high + low);
  }
  return bytes;
}

Status check(const std::string& dump) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch.error();
  if (Status status = write_descriptor(scratch->descriptor(), dump); !status) return status;
  return executor::check_dump(scratch->descriptor());
}

}  // namespace

std::string differences(const KeptReference& kept, const MeasuredRun& now,
                        std::int64_t compared_steps) {
  std::map<std::string, std::string> then = kept.run.facts;
  std::map<std::string, std::string> wanted = now.facts;
  then["compared steps"] = std::to_string(kept.compared_steps);
  wanted["compared steps"] = std::to_string(compared_steps);
  // Of a file of an earlier version.
  then.try_emplace("micro-batches", "none");
  then.try_emplace("compared", "loss, gradients, parameters, buffers");
  // What only the file says is as different as what only this run does.
  for (const auto& [name, value] : then) wanted.try_emplace(name);
  std::string text;
  for (const auto& [name, value] : wanted) {
    const std::string before = then[name];
    if (before == value) continue;
    text += (text.empty() ? "" : ", ") + name + " (" + before + ", now " + value + ")";
  }
  return text;
}

Result<KeptReference> load_reference(const std::string& file) {
  Result<std::string> text = read_file(file);
  if (!text) {
    Error error = std::move(text).error();
    if (error.code == ErrorCode::bad_input) error.hint = not_a_reference(file, "").hint;
    return error;
  }
  if (const Status within = check_json_bounds(*text, file, kReferenceBounds); !within) {
    return not_a_reference(file, within.error().message);
  }
  try {
    const Json json = Json::parse(*text);
    if (json.at("schema").get<std::string>() != kSchema) {
      return not_a_reference(file, "its schema is not " + std::string(kSchema));
    }
    KeptReference kept;
    Result<MeasuredRun> run = measured_run_from_json(json.at("run").dump());
    if (!run) return not_a_reference(file, "its run is damaged");
    kept.run = std::move(run).value();
    json.at("compared_steps").get_to(kept.compared_steps);
    const Json& repeatability = json.at("repeatability");
    repeatability.at("bitwise").get_to(kept.repeatability.bitwise);
    repeatability.at("first").get_to(kept.repeatability.first);
    repeatability.at("tensors").get_to(kept.repeatability.tensors);
    repeatability.at("by_digest").get_to(kept.repeatability.by_digest);
    repeatability.at("differing").get_to(kept.repeatability.differing);
    if (!kept.repeatability.bitwise) kept.repeatability.forget_magnitude();
    std::optional<std::string> dump = bytes_of(json.at("dump").get<std::string>());
    if (!dump) return not_a_reference(file, "its dump is not hexadecimal");
    kept.dump = std::move(*dump);
    if (Status status = check(kept.dump); !status) {
      return status.error().code == ErrorCode::internal
                 ? not_a_reference(file, status.error().message)
                 : status.error();
    }
    return kept;
  } catch (const nlohmann::json::exception& error) {
    return not_a_reference(file, error.what());
  }
}

Status save_reference(const std::string& file, const KeptReference& reference) {
  const executor::DumpDifference& repeatability = reference.repeatability;
  return write_file(file, dump({{"schema", kSchema},
                                {"compared_steps", reference.compared_steps},
                                {"run", Json::parse(measured_run_to_json(reference.run))},
                                {"repeatability",
                                 {{"bitwise", repeatability.bitwise},
                                  {"first", repeatability.first},
                                  {"tensors", repeatability.tensors},
                                  {"by_digest", repeatability.by_digest},
                                  {"differing", repeatability.differing}}},
                                {"dump", hex_of(reference.dump)}}));
}

}  // namespace stowage::cli
