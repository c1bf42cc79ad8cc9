#include "cli/torch/recorded_step.h"

#include <string>
#include <utility>
#include <vector>

#include "cli/torch/child_process.h"
#include "traces/trace_json.h"

namespace stowage::cli {

Result<Trace> record_in_child(const RunRequest& request) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch.error();
  std::vector<std::string> arguments = {"profile"};
  for (std::string& word : request.arguments()) arguments.push_back(std::move(word));
  arguments.insert(arguments.end(), {"-o", "-", "--quiet"});
  if (Status status = run_child(arguments, scratch->descriptor()); !status) return status.error();
  Result<std::string> text = scratch->content();
  if (!text) return text.error();
  return trace_from_json(*text, "the recording made again");
}

}  // namespace stowage::cli
