#include "report/export_chrome_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/words.h"
#include "traces/build_info.h"

namespace stowage::report {
namespace {

using Json = nlohmann::ordered_json;

// Microseconds, as the format counts.
double micro(Nanoseconds time) {
  return static_cast<double>(time) / 1000.0;
}

class Writer {
 public:
  std::string write(const std::vector<const StepView*>& steps) {
    const Trace& trace = *steps.front()->trace;
    const Json other = {{"writer", "stowage " + std::string(kVersion)},
                        {"model", trace.run.model},
                        {"run", run_line(trace)},
                        {"fingerprint", trace.fingerprint}};
    out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":" + text_of(other) + ",\"traceEvents\":[";
    for (const StepView* step : steps) {
      ++pid_;
      write_step(*step);
    }
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  static std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void add(const Json& event) {
    out_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    out_ += text_of(event);
  }

  void name(const char* what, std::int64_t tid, const Json& args) {
    add({{"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"name", what}, {"args", args}});
  }

  void write_step(const StepView& step) {
    step_ = &step;
    name("process_name", 0, {{"name", step.title + ": " + run_line(*step.trace)}});
    name("process_sort_index", 0, {{"sort_index", pid_}});
    for (std::size_t lane = 0; lane < kLanes; ++lane) write_lane(static_cast<Lane>(lane));
    write_phases();
    write_memory();
    write_arrows();
  }

  [[nodiscard]] static std::int64_t tid_of(Lane lane, std::size_t row) {
    return 10 * (static_cast<std::int64_t>(lane) + 1) +
           static_cast<std::int64_t>(std::min(row, std::size_t{9}));
  }

  // Slices of one thread must nest: what neither fits into its neighbours nor stands behind them
  // (kernels of another stream) goes into a further row of the lane.
  void write_lane(Lane lane) {
    const std::vector<Span>& spans = step_->timeline.lane(lane);
    if (lane == Lane::h2d) copy_threads_.clear();
    std::vector<std::vector<Nanoseconds>> rows;  // ends of the open slices, outermost first
    for (const Span& span : spans) {
      std::size_t row = 0;
      for (; row < rows.size(); ++row) {
        std::vector<Nanoseconds>& open = rows[row];
        while (!open.empty() && open.back() <= span.begin) open.pop_back();
        if (open.empty() || open.back() >= span.end) break;
      }
      if (row == rows.size()) rows.emplace_back();
      rows[row].push_back(span.end);
      if (lane == Lane::h2d) copy_threads_.push_back(tid_of(lane, row));
      write_slice(span, tid_of(lane, row));
    }
    for (std::size_t row = 0; row < std::max<std::size_t>(rows.size(), 1) && row < 10; ++row) {
      if (spans.empty()) break;
      const std::int64_t tid = tid_of(lane, row);
      name("thread_name", tid,
           {{"name", title_of(lane) + (row > 0 ? " " + std::to_string(row + 1) : std::string())}});
      name("thread_sort_index", tid, {{"sort_index", tid}});
    }
  }

  void write_slice(const Span& span, std::int64_t tid) {
    const Trace& trace = *step_->trace;
    Json args = Json::object();
    if (span.layer.valid()) args["layer"] = layer_name(trace, span.layer);
    if (span.op.valid()) args["op"] = span.op.value;
    if (span.bytes > 0) args["bytes"] = span.bytes;
    if (span.storage.valid()) args["storage"] = span.storage.value;
    if (span.bytes > 0 && span.end > span.begin && span.kind != SpanKind::stall) {
      args["GB/s"] = static_cast<double>(span.bytes) / static_cast<double>(span.end - span.begin);
    }
    if (span.kind == SpanKind::stall) add_reason(span, args);
    Json event = {{"ph", "X"},
                  {"pid", pid_},
                  {"tid", tid},
                  {"ts", micro(span.begin)},
                  {"dur", micro(span.end - span.begin)},
                  {"name", label_of(trace, span)},
                  {"cat", name_of(span.kind)}};
    if (!args.empty()) event["args"] = std::move(args);
    add(event);
  }

  void add_reason(const Span& span, Json& args) const {
    for (const StallRow& row : step_->stalls) {
      if (row.stall != span.row) continue;
      args["why"] = name_of(row.why);
      args["because"] = row.why_text;
      Json remedies = Json::array();
      for (const Remedy& remedy : row.remedies) remedies.push_back(remedy.text);
      args["would remove it"] = std::move(remedies);
    }
  }

  void write_phases() {
    const auto& phases = step_->timeline.phases;
    if (phases.empty()) return;
    name("thread_name", 1, {{"name", "phases"}});
    name("thread_sort_index", 1, {{"sort_index", 1}});
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const Nanoseconds end = i + 1 < phases.size() ? phases[i + 1].begin : step_->timeline.end;
      add({{"ph", "X"},
           {"pid", pid_},
           {"tid", 1},
           {"ts", micro(phases[i].begin)},
           {"dur", micro(std::max<Nanoseconds>(end - phases[i].begin, 0))},
           {"name", phases[i].name},
           {"cat", "phase"}});
    }
  }

  void counter(const char* title, Nanoseconds time, const Json& values) {
    add({{"ph", "C"}, {"pid", pid_}, {"ts", micro(time)}, {"name", title}, {"args", values}});
  }

  void write_memory() {
    const Timeline& timeline = step_->timeline;
    Json last;
    for (std::size_t e = 0; e < timeline.time.size(); ++e) {
      Json values = {{"requested", timeline.requested[e]}};
      if (!timeline.active.empty() && timeline.active[e] >= 0)
        values["active"] = timeline.active[e];
      if (!timeline.reserved.empty() && timeline.reserved[e] >= 0) {
        values["reserved"] = timeline.reserved[e];
      }
      if (values == last) continue;
      counter("memory (bytes)", timeline.time[e], values);
      last = std::move(values);
    }
    const MemoryByClass& memory = step_->memory;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      Json values = Json::object();
      for (std::size_t c = 0; c < memory.classes.size(); ++c) {
        values[stowage::name_of(memory.classes[c])] = memory.bytes[c][i];
      }
      counter("memory by class (bytes)", step_->time_of(memory.event[i]), values);
    }
    if (!step_->budget) return;
    const std::string title =
        std::string("budget on ") + simulator::name_of(step_->budget_on) + " (bytes)";
    for (const Nanoseconds time : {Nanoseconds{0}, timeline.end}) {
      counter(title.c_str(), time, {{"budget", *step_->budget}});
    }
  }

  // From a copy back to the first op that ends behind the place where compute waits for it.
  void write_arrows() {
    const std::vector<Span>& ops = step_->timeline.lane(Lane::compute);
    const std::vector<Span>& copies = step_->timeline.lane(Lane::h2d);
    std::vector<Nanoseconds> needed(copies.size(), -1);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!copies[i].storage.valid()) continue;
      const StorageStory story = step_->stories[copies[i].storage.index()];
      for (const Return& each : story.returns) {
        if (each.stay == copies[i].stay && each.copy_start == copies[i].begin)
          needed[i] = step_->time_of(each.needed);
      }
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Nanoseconds from = copies[i].begin;
      if (needed[i] < 0) continue;
      const Nanoseconds behind = std::max(needed[i], copies[i].end);
      const auto use = std::upper_bound(ops.begin(), ops.end(), behind,
                                        [](Nanoseconds t, const Span& op) { return t < op.end; });
      if (use == ops.end()) continue;
      ++flow_;
      add({{"ph", "s"},
           {"pid", pid_},
           {"tid", copy_threads_[i]},
           {"ts", micro(from)},
           {"id", flow_},
           {"name", "reload to use"},
           {"cat", "flow"}});
      add({{"ph", "f"},
           {"bp", "e"},
           {"pid", pid_},
           {"tid", tid_of(Lane::compute, 0)},
           {"ts", micro(std::max(use->begin, behind))},
           {"id", flow_},
           {"name", "reload to use"},
           {"cat", "flow"}});
    }
  }

  std::string out_;
  bool is_first_ = true;
  const StepView* step_ = nullptr;
  int pid_ = 0;
  std::int64_t flow_ = 0;
  std::vector<std::int64_t> copy_threads_;  // of the step's copies to the device
};

}  // namespace

std::string export_chrome(const std::vector<const StepView*>& steps) {
  return Writer().write(steps);
}

}  // namespace stowage::report
