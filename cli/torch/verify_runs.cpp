#include "cli/torch/verify_runs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/torch/results_json.h"

namespace stowage::cli {

namespace {

// Steps that are run, whatever is compared (docs/executor.md).
constexpr std::int64_t kSteps = 15;
constexpr std::int64_t kLeastSteps = 7;
constexpr std::int64_t kQuickSteps = 7;  // the fewest of which one is left to measure stalls

Result<Reference> run_reference(std::int64_t compared_steps,
                                const std::vector<std::string>& arguments, double tolerance) {
  Result<VerifiedRun> first = run_in_child("reference", compared_steps, arguments);
  if (!first) return first.error();
  Result<VerifiedRun> again = run_in_child("reference", compared_steps, arguments);
  if (!again) return again.error();
  Result<executor::DumpDifference> repeat =
      executor::compare_dumps(again->dump.descriptor(), first->dump.descriptor(), tolerance);
  if (!repeat) return repeat.error();
  return Reference{std::move(first->run), *repeat, std::move(first->dump), false, ""};
}

Result<Reference> reuse(const KeptReference& kept) {
  Result<ScratchFile> dump = ScratchFile::create();
  if (!dump) return dump.error();
  if (Status status = write_descriptor(dump->descriptor(), kept.dump); !status) {
    return status.error();
  }
  return Reference{kept.run, kept.repeatability, std::move(dump).value(), true, ""};
}

Status keep(const Reference& reference, const std::string& file, std::int64_t compared_steps) {
  Result<std::string> dump = reference.dump.content();
  if (!dump) return dump.error();
  return save_reference(file, {reference.run, compared_steps, reference.repeatability, *dump});
}

}  // namespace

Result<VerifiedRun> run_in_child(const std::string& mode, std::int64_t compared_steps,
                                 const std::vector<std::string>& arguments) {
  Result<ScratchFile> result = ScratchFile::create();
  if (!result) return result.error();
  Result<ScratchFile> dump = ScratchFile::create();
  if (!dump) return dump.error();
  const bool is_timed = mode != "plain";
  const bool is_quick = std::find(arguments.begin(), arguments.end(), "--quick") != arguments.end();
  const std::int64_t most = is_quick ? kQuickSteps : kSteps;
  std::vector<std::string> words = {
      "run-steps",
      "--mode",
      mode,
      "--steps",
      std::to_string(is_timed ? std::max(most, compared_steps) : compared_steps),
      "--least-steps",
      std::to_string(is_timed ? std::max(kLeastSteps, compared_steps) : compared_steps),
      "--dumped-steps",
      std::to_string(compared_steps),
      "--result-fd",
      std::to_string(result->descriptor()),
      "--dump-fd",
      std::to_string(dump->descriptor())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (std::find(arguments.begin(), arguments.end(), "--distributed") != arguments.end()) {
    // The other ranks' commands run the same ones in the same order.
    static int runs = 0;
    words.insert(words.end(), {"--group", mode + std::to_string(++runs)});
  }
  if (Status status = run_child(words); !status) return status.error();
  Result<std::string> text = result->content();
  if (!text) return text.error();
  Result<MeasuredRun> run = measured_run_from_json(*text);
  if (!run) return run.error();
  return VerifiedRun{std::move(run).value(), std::move(dump).value()};
}

Result<std::optional<executor::DumpDifference>> beside_plain(
    const VerifiedRun& planned, std::int64_t compared_steps,
    const std::vector<std::string>& arguments) {
  const Result<VerifiedRun> plain = run_in_child("plain", compared_steps, arguments);
  // It may need more memory than there is: that is what micro-batches are for.
  if (!plain && plain.error().code == ErrorCode::condition) {
    return std::optional<executor::DumpDifference>();
  }
  if (!plain) return plain.error();
  Result<executor::DumpDifference> difference =
      executor::compare_dumps(planned.dump.descriptor(), plain->dump.descriptor(), 0);
  if (!difference) return difference.error();
  return std::optional<executor::DumpDifference>(std::move(difference).value());
}

Result<std::optional<KeptReference>> find_reference(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::optional<KeptReference>();
  Result<KeptReference> kept = load_reference(file);
  if (!kept) return kept.error();
  return std::optional<KeptReference>(std::move(kept).value());
}

Result<Reference> reference_of(const MeasuredRun& planned, const std::optional<KeptReference>& kept,
                               const std::string& file, std::int64_t compared_steps,
                               const std::vector<std::string>& arguments, double tolerance) {
  std::string note;
  if (kept) {
    const std::string other = differences(*kept, planned, compared_steps);
    if (other.empty()) return reuse(*kept);
    note = "the reference in " + file + " is of another step, " + other +
           ": it is run and written again";
  }
  Result<Reference> reference = run_reference(compared_steps, arguments, tolerance);
  if (!reference) return reference.error();
  reference->note = note;
  if (!file.empty()) {
    if (Status status = keep(*reference, file, compared_steps); !status) return status.error();
  }
  return reference;
}

}  // namespace stowage::cli
