#include "gui/model/open_file.h"

#include <QCoreApplication>
#include <algorithm>
#include <filesystem>
#include <future>
#include <new>
#include <utility>

#include "planner/budget.h"
#include "report/plans_trace.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/plan_structure.h"
#include "traces/file_io.h"
#include "traces/sha256.h"
#include "traces/trace_json.h"
#include "traces/validate.h"

namespace stowage::gui {
namespace {

namespace fs = std::filesystem;

QString words(const char* text) {
  return QCoreApplication::translate("open_file", text);
}

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

// In the order in which they are opened.
enum class FileKind { trace, plan, run };

// By the value of the first key `schema`: a trace has an object there, the others a text. A file
// without one is taken for a trace, whose reader says what is wrong with it.
FileKind kind_of(std::string_view text) {
  const std::size_t key = text.substr(0, 1 << 16).find("\"schema\"");
  if (key == std::string_view::npos) return FileKind::trace;
  const std::size_t value = text.find_first_not_of(" \t\r\n:", key + 8);
  if (value == std::string_view::npos || text[value] != '"') return FileKind::trace;
  return text.substr(value + 1).starts_with("stowage-plan/") ? FileKind::plan : FileKind::run;
}

Result<TracePtr> trace_of(std::string text, const std::string& path, const JobContext& job) {
  job.progress(0.1, words("Reading the trace"));
  // Both take about as long, and neither needs the other.
  std::future<std::string> hashing =
      std::async(std::launch::async, [&text] { return sha256_of(text); });
  Result<Trace> trace = trace_from_json(text, path);
  const std::string hash = hashing.get();
  if (!trace) return trace.error();
  text = {};
  if (job.stop().stop_requested()) return interrupted();
  job.progress(0.6, words("Indexing the step"));
  return std::make_shared<const TraceData>(std::move(trace).value(), path, hash);
}

Result<Opened> replayed(TracePtr trace, PlanStatePtr plan, const JobContext& job) {
  if (job.stop().stop_requested()) return interrupted();
  job.progress(0.8, words("Replaying the step"));
  std::future<StepPicturePtr> recorded =
      std::async(std::launch::async, [trace] { return recorded_view(*trace); });
  Result<SimulatedPtr> simulated = simulate(trace, std::move(plan), job.stop());
  if (!simulated) return simulated.error();
  job.progress(0.9, words("Laying out the views"));
  Opened opened;
  opened.recorded = recorded.get();
  opened.planned = planned_view(**simulated, opened.recorded);
  opened.trace = std::move(trace);
  opened.simulated = std::move(simulated).value();
  return opened;
}

}  // namespace

Result<Opened> open_plan(const TracePtr& trace, PlanStatePtr plan, const JobContext& job) {
  Result<TracePtr> step = in_parts(trace, simulator::parts_of(plan->plan));
  if (step) return replayed(std::move(step).value(), std::move(plan), job);
  Error error = std::move(step).error();
  error.file = plan->file;
  error.pointer = "/micro_batches";
  return error;
}

namespace {

Result<Opened> with_plan(const std::string& text, const std::string& path,
                         const TracePtr& open_trace, const JobContext& job) {
  Result<simulator::Plan> plan = simulator::plan_from_json(text, path);
  if (!plan) return plan.error();
  auto state = std::make_shared<PlanState>();
  state->plan = std::move(plan).value();
  state->file = path;
  const auto on = [&](const TracePtr& trace) -> Result<Opened> {
    const TraceData& whole = trace->whole ? *trace->whole : *trace;
    Status budget = planner::resolve_budget(whole.index, trace->sha256, state->plan);
    if (!budget) {
      Error error = std::move(budget).error();
      error.file = path;
      return error;
    }
    return open_plan(trace, std::move(state), job);
  };
  const simulator::PlanTarget& target = state->plan.target;
  const std::string not_for =
      open_trace ? "the plan is not for " + file_name(open_trace->path) + ", which is open; " : "";
  if (open_trace &&
      (target.fingerprint.empty() || target.fingerprint == open_trace->fingerprint())) {
    return on(open_trace);
  }
  const char* hint = "open the trace first, then this plan";
  const Result<report::PlansTrace> named = report::plans_trace(state->plan, path, hint);
  if (!named) return named.error();
  const std::string& file = named->file;
  if (file.empty()) {
    return Error{ErrorCode::bad_input, not_for + "it does not say which trace it was made for",
                 path, "/for/trace_file", hint};
  }
  Result<std::string> read = read_file(file);
  if (!read) {
    return Error{ErrorCode::bad_input, not_for + "its trace cannot be read: " + read.error().text(),
                 path, "/for/trace_file", hint};
  }
  Result<TracePtr> trace = trace_of(std::move(read).value(), file, job);
  if (!trace) return trace.error();
  return on(std::move(trace).value());
}

// A file that a command named relative to where it ran: there, beside the result, or nowhere.
std::string find_named(const std::string& name, const std::string& result_file) {
  std::error_code error;
  if (name.empty()) return {};
  const fs::path beside = fs::path(result_file).parent_path();
  for (const fs::path& at : {fs::path(name), beside / name, beside / fs::path(name).filename()}) {
    if (fs::is_regular_file(at, error)) return at.string();
  }
  return {};
}

Result<Opened> with_run(const std::string& text, const std::string& path,
                        const TracePtr& open_trace, const JobContext& job) {
  Result<RunResult> run = run_result_from_json(text, path);
  if (!run) return run.error();
  TracePtr trace = open_trace;
  if (const std::string file = find_named(run->trace_file, path); !file.empty()) {
    Result<std::string> read = read_file(file);
    if (!read) return read.error();
    Result<TracePtr> loaded = trace_of(std::move(read).value(), file, job);
    if (!loaded) return loaded.error();
    trace = std::move(loaded).value();
  }
  const std::string plan_file = find_named(run->plan_file, path);
  if (plan_file.empty()) {
    return Error{ErrorCode::bad_input, "the plan of this run, " + run->plan_file + ", is not there",
                 path, "/files/plan", "put the plan beside the result"};
  }
  Result<std::string> plan = read_file(plan_file);
  if (!plan) return plan.error();
  Result<Opened> opened = with_plan(*plan, plan_file, trace, job);
  if (opened) opened->measured = std::move(run).value();
  return opened;
}

}  // namespace

namespace {

Result<Opened> open_text(std::string text, const std::string& path, const TracePtr& open_trace,
                         const JobContext& job) {
  switch (kind_of(text)) {
    case FileKind::plan:
      return with_plan(text, path, open_trace, job);
    case FileKind::run:
      return with_run(text, path, open_trace, job);
    case FileKind::trace:
      break;
  }
  Result<TracePtr> trace = trace_of(std::move(text), path, job);
  if (!trace) return trace.error();
  return replayed(*trace, std::make_shared<const PlanState>(fresh_state((*trace)->trace)), job);
}

Error no_memory(const std::string& path) {
  return {ErrorCode::environment, "does not fit into this machine's memory", path, "", ""};
}

// One for all of them, and for the note: what a person is told is one message.
Error error_of(const std::vector<Error>& errors, const std::string& note) {
  if (errors.size() == 1 && note.empty()) return errors.front();
  std::string text = errors.front().text();
  if (errors.size() > 1) {
    text = std::to_string(errors.size()) + " files cannot be opened";
    for (const Error& error : errors) text += "\n" + error.text();
  }
  if (!note.empty()) text += "\n" + note;
  return {errors.front().code, std::move(text), "", "", ""};
}

// A plan, or a run's, brought another trace than the one that was open. Empty: it did not.
std::string note_of(FileKind kind, const std::string& path, const TracePtr& before,
                    const TracePtr& now) {
  const auto whole = [](const TracePtr& trace) { return trace->whole ? trace->whole : trace; };
  if (kind == FileKind::trace || !before || whole(before) == whole(now)) return {};
  if (whole(before)->sha256 == whole(now)->sha256) return {};
  return file_name(path) + " is not for " + file_name(before->path) +
         ", which was open: it is for " + file_name(now->path) + ", and that is shown.";
}

// One trace, one plan: of several the last one is shown.
std::string note_of(const std::vector<std::pair<FileKind, std::string>>& read) {
  const auto count = [&](FileKind kind) {
    return std::count_if(read.begin(), read.end(),
                         [&](const auto& each) { return each.first == kind; });
  };
  std::string note;
  for (const FileKind kind : {FileKind::trace, FileKind::plan, FileKind::run}) {
    if (count(kind) < 2) continue;
    const char* word = kind == FileKind::trace  ? "trace"
                       : kind == FileKind::plan ? "plan"
                                                : "result";
    std::string others;
    std::string last;
    for (const auto& [of, path] : read) {
      if (of != kind) continue;
      if (!last.empty()) others += (others.empty() ? "" : ", ") + last;
      last = file_name(path);
    }
    if (!note.empty()) note += " ";
    note += std::string("One ") + word + " is shown at a time: " + last + ", not " + others + ".";
  }
  return note;
}

}  // namespace

Result<Opened> open_file(const std::string& path, const TracePtr& open_trace,
                         const JobContext& job) try {
  job.progress(0, words("Reading the file"));
  Result<std::string> text = read_file(path);
  if (!text) return text.error();
  if (job.stop().stop_requested()) return interrupted();
  return open_text(std::move(text).value(), path, open_trace, job);
} catch (const std::bad_alloc&) {
  return no_memory(path);
}

OpenedFiles open_files(const std::vector<std::string>& paths, const TracePtr& open_trace,
                       const JobContext& job) {
  struct File {
    FileKind kind;
    std::string path;
    std::string text;
  };
  OpenedFiles out;
  std::vector<Error> errors;
  std::vector<File> files;
  std::vector<std::pair<FileKind, std::string>> read;
  std::string note;
  TracePtr trace = open_trace;
  std::string path = paths.empty() ? std::string() : paths.front();
  try {
    job.progress(0, words("Reading the file"));
    for (const std::string& each : paths) {
      path = each;
      Result<std::string> text = read_file(path);
      if (!text) {
        errors.push_back(text.error());
        continue;
      }
      const FileKind kind = kind_of(*text);
      files.push_back({kind, path, std::move(text).value()});
    }
    std::stable_sort(files.begin(), files.end(),
                     [](const File& a, const File& b) { return a.kind < b.kind; });
    for (File& file : files) {
      path = file.path;
      if (job.stop().stop_requested()) break;
      Result<Opened> opened = open_text(std::move(file.text), path, trace, job);
      if (!opened) {
        errors.push_back(opened.error());
        continue;
      }
      note = note_of(file.kind, path, trace, opened->trace);
      trace = opened->trace;
      out.opened = std::move(opened).value();
      out.files.push_back(path);
      read.emplace_back(file.kind, path);
    }
  } catch (const std::bad_alloc&) {
    errors.push_back(no_memory(path));
  }
  const std::string several = note_of(read);
  out.note = note + (note.empty() || several.empty() ? "" : " ") + several;
  if (!errors.empty()) out.error = error_of(errors, std::exchange(out.note, {}));
  return out;
}

Result<Opened> open_trace(Trace trace, const std::string& path, const std::string& sha256,
                          const JobContext& job) {
  if (const Status valid = validate(trace, path); !valid) return valid.error();
  auto plan = std::make_shared<const PlanState>(fresh_state(trace));
  return replayed(std::make_shared<const TraceData>(std::move(trace), path, sha256),
                  std::move(plan), job);
}

}  // namespace stowage::gui
