#include "profiler/assembly/timing_pass_json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace stowage::profiler {

namespace {

using Json = nlohmann::json;

// One column a member: {"key": [row0, row1, ..]}.
template <class Row, class Member>
void put(Json& table, const char* key, const std::vector<Row>& rows, Member Row::*member) {
  Json column = Json::array();
  for (const Row& row : rows) {
    if constexpr (std::is_enum_v<Member>) {
      column.push_back(static_cast<int>(row.*member));
    } else {
      column.push_back(row.*member);
    }
  }
  table[key] = std::move(column);
}

template <class Row, class Member>
void get(const Json& table, const char* key, std::vector<Row>& rows, Member Row::*member) {
  const Json& column = table.at(key);
  if (rows.empty()) rows.resize(column.size());
  if (rows.size() != column.size()) throw std::length_error(key);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if constexpr (std::is_enum_v<Member>) {
      rows[i].*member = static_cast<Member>(column[i].get<int>());
    } else {
      column[i].get_to(rows[i].*member);
    }
  }
}

// Call f(key, member pointer) for every column of a table; writer and reader share the lists.
constexpr auto kEvents = [](auto&& f) {
  f("kind", &RawEvent::kind);
  f("id", &RawEvent::id);
  f("time", &RawEvent::time_ns);
  f("requested", &RawEvent::requested);
  f("bytes", &RawEvent::bytes);
};

constexpr auto kOps = [](auto&& f) {
  f("name", &RawOp::name);
  f("parent", &RawOp::parent);
  f("thread", &RawOp::thread);
  f("sequence", &RawOp::sequence);
  f("backward_sequence", &RawOp::backward_sequence);
};

constexpr auto kSaved = [](auto&& f) {
  f("layer", &RawSaved::layer);
  f("call", &RawSaved::call);
  f("ordinal", &RawSaved::ordinal);
};

constexpr auto kSpans = [](auto&& f) {
  f("begin", &RawSpan::begin_ns);
  f("end", &RawSpan::end_ns);
};

constexpr auto kActivities = [](auto&& f) {
  f("kind", &RawActivity::kind);
  f("name", &RawActivity::name);
  f("start", &RawActivity::start_ns);
  f("end", &RawActivity::end_ns);
  f("correlation", &RawActivity::correlation);
  f("stream", &RawActivity::stream);
  f("bytes", &RawActivity::bytes);
  f("source", &RawActivity::source);
  f("destination", &RawActivity::destination);
};

constexpr auto kLaunches = [](auto&& f) {
  f("start", &RawLaunch::start_ns);
  f("end", &RawLaunch::end_ns);
  f("correlation", &RawLaunch::correlation);
  f("thread", &RawLaunch::thread);
};

constexpr auto kSyncs = [](auto&& f) {
  f("start", &RawSync::start_ns);
  f("end", &RawSync::end_ns);
};

constexpr auto kExternals = [](auto&& f) {
  f("correlation", &RawExternal::correlation);
  f("id", &RawExternal::id);
};

template <class Rows, class Columns>
Json table_of(const Rows& rows, Columns&& columns) {
  Json table = Json::object();
  columns([&](const char* key, auto member) { put(table, key, rows, member); });
  return table;
}

template <class Rows, class Columns>
void read_table(const Json& table, Rows& rows, Columns&& columns) {
  columns([&](const char* key, auto member) { get(table, key, rows, member); });
}

Error not_ours(const std::string& what) {
  return {ErrorCode::internal, "a timing pass that cannot be read: " + what, "", "", ""};
}

}  // namespace

std::string timing_pass_to_json(const TimingPass& timing) {
  const RawPass& pass = timing.pass;
  const RawActivities& a = timing.activities;
  std::vector<std::int32_t> unpacks;
  for (const RawUnpack& unpack : pass.unpacks) unpacks.push_back(unpack.saved);
  const Json json = {{"step_ns", timing.step_ns},
                     {"hooked", pass.hooked},
                     {"pass_step_ns", pass.step_ns},
                     {"peak_requested", pass.peak_requested},
                     {"requested_at_begin", pass.requested_at_begin},
                     {"events", table_of(pass.events, kEvents)},
                     {"layer_paths", pass.layer_paths},
                     {"ops", table_of(pass.ops, kOps)},
                     {"saved", table_of(pass.saved, kSaved)},
                     {"unpacks", unpacks},
                     {"hook_spans", table_of(pass.hook_spans, kSpans)},
                     {"threads", pass.threads},
                     {"names", a.names},
                     {"activities", table_of(a.activities, kActivities)},
                     {"launches", table_of(a.launches, kLaunches)},
                     {"syncs", table_of(a.syncs, kSyncs)},
                     {"externals", table_of(a.externals, kExternals)},
                     {"dropped_records", a.dropped_records},
                     {"zero_timestamps", a.zero_timestamps},
                     {"other_records", a.other_records},
                     {"overhead_ns", a.overhead_ns},
                     {"library", a.library}};
  // Names of kernels come from outside: bytes that are no UTF-8 are replaced, not thrown at us.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TimingPass> timing_pass_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TimingPass timing;
    RawPass& pass = timing.pass;
    RawActivities& a = timing.activities;
    json.at("step_ns").get_to(timing.step_ns);
    pass.light = true;
    json.at("hooked").get_to(pass.hooked);
    json.at("pass_step_ns").get_to(pass.step_ns);
    json.at("peak_requested").get_to(pass.peak_requested);
    json.at("requested_at_begin").get_to(pass.requested_at_begin);
    read_table(json.at("events"), pass.events, kEvents);
    json.at("layer_paths").get_to(pass.layer_paths);
    read_table(json.at("ops"), pass.ops, kOps);
    read_table(json.at("saved"), pass.saved, kSaved);
    for (const Json& saved : json.at("unpacks"))
      pass.unpacks.push_back({saved.get<std::int32_t>()});
    read_table(json.at("hook_spans"), pass.hook_spans, kSpans);
    json.at("threads").get_to(pass.threads);
    json.at("names").get_to(a.names);
    read_table(json.at("activities"), a.activities, kActivities);
    read_table(json.at("launches"), a.launches, kLaunches);
    read_table(json.at("syncs"), a.syncs, kSyncs);
    read_table(json.at("externals"), a.externals, kExternals);
    json.at("dropped_records").get_to(a.dropped_records);
    json.at("zero_timestamps").get_to(a.zero_timestamps);
    json.at("other_records").get_to(a.other_records);
    json.at("overhead_ns").get_to(a.overhead_ns);
    json.at("library").get_to(a.library);
    return timing;
  } catch (const nlohmann::json::exception& error) {
    return not_ours(error.what());
  } catch (const std::length_error& error) {
    return not_ours(std::string("columns differ in length at ") + error.what());
  }
}

}  // namespace stowage::profiler
