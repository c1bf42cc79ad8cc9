#include "traces/trace_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>

#include "tests/traces/synthetic_trace.h"

namespace stowage {
namespace {

using testing::small_trace;
using Json = nlohmann::ordered_json;

Json small_json() {
  return Json::parse(trace_to_json(small_trace()));
}

// The small trace, and the same in micro-batches.
Trace in_micro_batches() {
  Trace trace = small_trace();
  for (const std::int32_t count : {2, 5}) {
    Trace part = small_trace();
    part.micro_batches.segment.emplace_back(part.strings.size());
    part.micro_batches.count.push_back(count);
    part.strings.push_back("head");
    trace.divided.push_back(std::make_shared<const Trace>(std::move(part)));
  }
  return trace;
}

// The error of a text as "pointer: message", or "" when it is a good trace.
std::string error_of(const std::string& text) {
  const auto trace = trace_from_json(text, "t.json");
  if (trace) return "";
  EXPECT_EQ(trace.error().code, ErrorCode::bad_input);
  EXPECT_EQ(trace.error().file, "t.json");
  return trace.error().pointer + ": " + trace.error().message;
}

// The error after one value of the small trace was replaced.
std::string error_with(const char* pointer, const Json& value) {
  Json json = small_json();
  json[Json::json_pointer(pointer)] = value;
  return error_of(json.dump());
}

std::string error_without(const char* parent, const char* key) {
  Json json = small_json();
  json[Json::json_pointer(parent)].erase(key);
  return error_of(json.dump());
}

TEST(TraceJson, RoundTripIsByteIdentical) {
  for (const int ops : {0, 1, 8, 300}) {
    const Trace trace = testing::SyntheticTrace(ops, 4).trace();
    const std::string text = trace_to_json(trace);
    const auto back = trace_from_json(text, "t.json");
    if (ops == 0) continue;  // no layer owns the parameter: written, not valid
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(trace_to_json(*back), text);
    EXPECT_EQ(back->saved.site, trace.saved.site);
    EXPECT_EQ(back->storages.natural_free_event, trace.storages.natural_free_event);
    EXPECT_EQ(back->storages.parameter, trace.storages.parameter);
    EXPECT_EQ(back->calibration.d2h.bytes_per_second, trace.calibration.d2h.bytes_per_second);
    EXPECT_EQ(back->run.deterministic, trace.run.deterministic);
  }
}

TEST(TraceJson, IsCompactAndWhatTheLibraryWouldWrite) {
  Trace trace = small_trace();
  trace.run.argv = {"quote \" backslash \\ slash / tab \t nul", std::string("\0", 1),
                    "\xC3\xA9\xE2\x82\xAC"};
  const std::string text = trace_to_json(trace);
  EXPECT_EQ(Json::parse(text).dump(), text);
  EXPECT_EQ(trace_from_json(text, "t.json")->run.argv, trace.run.argv);
}

TEST(TraceJson, ReplacesBytesThatAreNoUtf8) {
  Trace trace = small_trace();
  trace.run.model = "a\xff";
  const auto back = trace_from_json(trace_to_json(trace), "t.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->run.model, "a\xEF\xBF\xBD");
}

TEST(TraceJson, IgnoresUnknownKeysAndColumns) {
  Json json = small_json();
  json["later"] = {{"deep", {1, 2.5, nullptr, {{"x", true}}}}};
  json["ops"]["later"] = {1, "two"};
  json["run"]["later"] = "text";
  json["schema"]["minor"] = 7;
  const auto trace = trace_from_json(json.dump(2), "t.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->schema.minor, 7);
}

// Files of schema 1.1 do not know the updates of parameters.
TEST(TraceJson, ReadsTheMinorVersionBefore) {
  Json json = small_json();
  json["schema"]["minor"] = 1;
  auto& kinds = json["legend"]["event_kind"];
  ASSERT_EQ(kinds.size(), 19U);
  kinds.erase(kinds.size() - 1);
  kinds.erase(kinds.size() - 1);
  kinds.erase(kinds.size() - 1);
  kinds.erase(kinds.size() - 1);
  const auto trace = trace_from_json(json.dump(), "t.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->schema.minor, 1);
  EXPECT_EQ(trace->events.kind, small_trace().events.kind);
}

// Files of schema 1.5 do not say how wide elements are, and know fewer dtypes.
TEST(TraceJson, DerivesTheItemSizesOfAnOlderFile) {
  Json json = small_json();
  json["schema"]["minor"] = 5;
  json["tensors"].erase("item_bytes");
  json["legend"]["dtype"] = {"float32", "float64", "other"};
  for (Json& value : json["tensors"]["dtype"]) value = 0;
  json["tensors"]["dtype"][1] = 2;
  const auto trace = trace_from_json(json.dump(), "t.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->tensors.dtype[1], DType::other);
  std::vector<Bytes> expected(trace->tensors.size(), 4);
  expected[1] = 1;
  EXPECT_EQ(trace->tensors.item_bytes, expected);
}

TEST(TraceJson, ItemSizesAreThoseOfTheDtypes) {
  EXPECT_EQ(error_with("/tensors/item_bytes/2", 8),
            "/tensors/item_bytes/2: is 8, but float32 has 4");
  EXPECT_EQ(error_with("/tensors/item_bytes/2", 0), "/tensors/item_bytes/2: is 0, not positive");
  Json json = small_json();
  json["tensors"]["item_bytes"].erase(0);
  EXPECT_NE(error_of(json.dump()).find("/tensors/item_bytes: has "), std::string::npos);
}

TEST(TraceJson, UpdatesOfParametersComeBack) {
  Trace trace = small_trace();
  const EventId end(trace.events.size() - 1);
  const EventId before(trace.events.size() - 2);
  // Two more events that nothing else refers to, ahead of the end.
  for (const EventKind kind :
       {EventKind::parameter_update_begin, EventKind::parameter_update_end}) {
    Events& events = trace.events;
    const auto at = static_cast<std::ptrdiff_t>(events.size() - 1);
    events.kind.insert(events.kind.begin() + at, kind);
    events.ref.insert(events.ref.begin() + at, 0);
    events.op.insert(events.op.begin() + at, OpId());
    events.time.insert(events.time.begin() + at, events.time[before.index()]);
  }
  trace.phases.last_event.back() = EventId(trace.events.size() - 1);
  const auto back = trace_from_json(trace_to_json(trace), "t.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->events.kind, trace.events.kind);
  EXPECT_EQ(back->events.ref, trace.events.ref);
  EXPECT_EQ(back->events.kind[end.index()], EventKind::parameter_update_begin);
  EXPECT_STREQ(name_of(EventKind::parameter_update_end), "parameter_update_end");
}

TEST(TraceJson, MapsEnumsByTheLegend) {
  Json json = small_json();
  // The same trace by a writer whose dtypes begin with float32.
  json["legend"]["dtype"] = {"float32", "of the future"};
  for (Json& value : json["tensors"]["dtype"]) value = 0;
  const auto trace = trace_from_json(json.dump(), "t.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->tensors.dtype[3], DType::float32);
  json["tensors"]["dtype"][3] = 1;
  EXPECT_EQ(error_of(json.dump()),
            "/tensors/dtype/3: is 1 ('of the future'), which this version does not know");
  json["tensors"]["dtype"][3] = 2;
  EXPECT_EQ(error_of(json.dump()), "/tensors/dtype/3: is 2, but /legend/dtype has 2 names");
}

TEST(TraceJson, RefusesWhatIsNoTrace) {
  EXPECT_EQ(error_of(""), ": is not valid JSON: it ends too early, at byte 0");
  EXPECT_EQ(error_of("hello"), ": is not valid JSON at byte 0: a value is expected");
  EXPECT_EQ(error_of("[]"), ": is an array, not an object");
  EXPECT_EQ(error_of("17"), ": is an integer, not an object");
  EXPECT_EQ(error_of("null"), ": is null, not an object");
  EXPECT_EQ(error_of("{}"), "/schema: is missing");
  EXPECT_EQ(error_of(trace_to_json(small_trace()) + "x").substr(0, 26),
            ": is not valid JSON at byt");
}

TEST(TraceJson, RefusesDeepNesting) {
  for (const char* open : {"[", "{\"a\":", "{\"x\":["}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += open;
    EXPECT_NE(error_of(text), "");
    EXPECT_NE(error_of("{\"unknown\":" + text).find("is nested more than 64 levels deep"),
              std::string::npos);
  }
}

// Each limit, at it and one below.
TEST(TraceJson, RefusesMoreThanATraceMayHold) {
  const Trace trace = small_trace();
  const std::string text = trace_to_json(trace);
  TraceLimits fits;
  fits.lists = trace.lists.size();
  EXPECT_TRUE(trace_from_json(text, "t.json", fits));
  const auto refused = [&](const TraceLimits& limits) {
    const auto read = trace_from_json(text, "t.json", limits);
    return read ? std::string() : read.error().pointer + ": " + read.error().message;
  };
  TraceLimits fewer = fits;
  --fewer.lists;
  EXPECT_EQ(refused(fewer), "/lists/" + std::to_string(fewer.lists) +
                                ": is beyond what a trace may hold: more than " +
                                std::to_string(fewer.lists) + " lists");
  fewer = fits;
  fewer.integers = 1;
  EXPECT_NE(refused(fewer).find("more than 1 integers"), std::string::npos);
  fewer = fits;
  fewer.texts = 3;
  EXPECT_EQ(refused(fewer).substr(0, 7), "/legend");
  EXPECT_NE(refused(fewer).find("more than 3 strings"), std::string::npos);
  fewer = fits;
  fewer.text_bytes = 12;
  EXPECT_EQ(refused(fewer), "/schema/name: is a string of more than 12 B");
}

// A table's "n" and the room that is made for it: no more in all than the text can fill.
TEST(TraceJson, ManyRowsAnnouncedTakeNoMemory) {
  const std::string text = trace_to_json(small_trace());
  std::string many = text;
  for (std::size_t at = 0; (at = many.find("\"n\":", at)) != std::string::npos;) {
    at += 4;
    many.replace(at, many.find_first_not_of("0123456789", at) - at, "2147483647");
  }
  EXPECT_NE(error_of(many).find("values, but n is 2147483647"), std::string::npos);
}

TEST(TraceJson, RefusesAnotherSchema) {
  EXPECT_EQ(error_with("/schema/major", 2), "/schema/major: is 2; this version reads 1");
  EXPECT_EQ(error_with("/schema/major", 0), "/schema/major: is 0; this version reads 1");
  EXPECT_EQ(error_with("/schema/major", "1"), "/schema/major: is a string, not an integer");
  EXPECT_EQ(error_with("/schema/major", 1.0),
            "/schema/major: is a number with a fraction or an exponent, not an integer");
  EXPECT_EQ(error_with("/schema/name", "stowage-plan"),
            "/schema/name: is 'stowage-plan', not 'stowage-trace'");
  EXPECT_EQ(error_with("/schema", "stowage-trace/1"), "/schema: is a string, not an object");
}

TEST(TraceJson, RefusesMissingAndRepeatedKeys) {
  EXPECT_EQ(error_without("/storages", "bytes"), "/storages/bytes: is missing");
  EXPECT_EQ(error_without("/ops", "n"), "/ops/n: is missing");
  EXPECT_EQ(error_without("", "events"), "/events: is missing");
  EXPECT_EQ(error_without("", "legend"), "/legend: is missing");
  EXPECT_EQ(error_without("/calibration/d2h", "latency"), "/calibration/d2h/latency: is missing");
  std::string twice = trace_to_json(small_trace());
  twice.insert(1, "\"lists\":[],");
  EXPECT_EQ(error_of(twice), "/lists: appears twice");
}

TEST(TraceJson, RefusesColumnsOfAnotherLengthOrType) {
  Json json = small_json();
  json["storages"]["bytes"].erase(0);
  EXPECT_EQ(error_of(json.dump()), "/storages/bytes: has 16 values, but n is 17");
  EXPECT_EQ(error_with("/ops/n", 3), "/ops/name: has 16 values, but n is 3");
  EXPECT_EQ(error_with("/ops/n", -1), "/ops/n: is -1, which is out of range");
  EXPECT_EQ(error_with("/ops/n", 3'000'000'000), "/ops/n: is 3000000000, which is out of range");
  EXPECT_EQ(error_with("/storages/bytes", 5),
            "/storages/bytes: is an integer, not an array of integers");
  EXPECT_EQ(error_with("/storages/bytes/3", "5"), "/storages/bytes/3: is a string, not an integer");
  EXPECT_EQ(error_with("/storages/bytes/3", Json::array({1})),
            "/storages/bytes/3: is an array, not an integer");
  EXPECT_EQ(error_with("/storages/bytes/3", Json::object()),
            "/storages/bytes/3: is an object, not an integer");
  EXPECT_EQ(error_with("/storages/bytes/3", nullptr), "/storages/bytes/3: is null, not an integer");
  EXPECT_EQ(error_with("/storages/bytes/3", 1.5),
            "/storages/bytes/3: is a number with a fraction or an exponent, not an integer");
  EXPECT_EQ(error_with("/storages/bytes/3", 18446744073709551615ULL),
            "/storages/bytes/3: is an integer beyond 64 bits, not an integer");
  EXPECT_EQ(error_with("/ops/layer/3", 4294967296),
            "/ops/layer/3: is 4294967296, which is out of range");
  EXPECT_EQ(error_with("/ops/in_place/3", 2), "/ops/in_place/3: is 2, which is out of range");
  EXPECT_EQ(error_with("/events/kind/3", 256), "/events/kind/3: is 256, which is out of range");
  EXPECT_EQ(error_with("/run/deterministic", 2), "/run/deterministic: is 2, not 0 or 1");
  EXPECT_EQ(error_with("/run/deterministic", true), "/run/deterministic: is true, not an integer");
  EXPECT_EQ(error_with("/run/model", 7), "/run/model: is an integer, not a string");
  EXPECT_EQ(error_with("/run/argv", "x"), "/run/argv: is a string, not an array of strings");
  EXPECT_EQ(error_with("/strings/2", 7), "/strings/2: is an integer, not a string");
  EXPECT_EQ(error_with("/lists", 7), "/lists: is an integer, not an array of arrays");
  EXPECT_EQ(error_with("/lists/1", 7), "/lists/1: is an integer, not an array of integers");
  EXPECT_EQ(error_with("/lists/1/1", "x"), "/lists/1/1: is a string, not an integer");
  EXPECT_EQ(error_with("/lists/1/1", Json::array()), "/lists/1/1: is an array, not an integer");
  EXPECT_EQ(error_with("/ops", 7), "/ops: is an integer, not an object");
}

TEST(TraceJson, RefusesNumbersAndTextThatAreNoJson) {
  const std::string text = trace_to_json(small_trace());
  const std::size_t at = text.find("\"batch\":4") + 8;
  for (const char* bad : {"NaN", "Infinity", "-", "04", "0x4", "4.", ".4", "4e", "+4", "1 2"}) {
    std::string broken = text;
    broken.replace(at, 1, bad);
    EXPECT_NE(error_of(broken).find("/run/batch: is not valid JSON at byte"), std::string::npos)
        << bad << error_of(broken);
  }
  for (const char* bad : {"\xff", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82",
                          "\\ud800", "\\udc00", "\\ud800\\u0041", "\\x", "\\u12g4", "\n"}) {
    std::string broken = text;
    broken.insert(text.find("synthetic"), bad);
    EXPECT_NE(error_of(broken).find("/schema/writer: is not valid JSON at byte"), std::string::npos)
        << bad << error_of(broken);
  }
}

TEST(TraceJson, AcceptsTheLimitsOfNumbers) {
  const std::string text = trace_to_json(small_trace());
  const std::size_t at = text.find("\"seed\":0") + 7;
  for (const std::string good :
       {"9223372036854775807", "-9223372036854775808", "-1", "999999999999999999",
        "1000000000000000000", "-9223372036854775807"}) {
    std::string changed = text;
    changed.replace(at, 1, good);
    const auto trace = trace_from_json(changed, "t.json");
    ASSERT_TRUE(trace) << trace.error().text();
    EXPECT_EQ(std::to_string(trace->run.seed), good);
  }
  for (const std::string bad :
       {"9223372036854775808", "-9223372036854775809", "99999999999999999999",
        "18446744073709551616", "100000000000000000000000000000000000000000"}) {
    std::string changed = text;
    changed.replace(at, 1, bad);
    EXPECT_EQ(error_of(changed), "/run/seed: is an integer beyond 64 bits, not an integer");
  }
}

// Damage to a good file: bytes flipped, cut, doubled or moved, with fixed seeds.
std::string damaged(const std::string& text, std::mt19937& random) {
  std::string out = text;
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  for (std::size_t edits = 1 + below(4); edits > 0 && !out.empty(); --edits) {
    const std::size_t at = below(out.size());
    switch (below(6)) {
      case 0:
        out[at] = static_cast<char>(out[at] ^ (1 << below(8)));
        break;
      case 1:
        out[at] = "0123456789,-[]{}:\"\\e.ntf u"[below(26)];
        break;
      case 2:
        out.resize(at);
        break;
      case 3:
        out.erase(at, below(40));
        break;
      case 4:
        out.insert(at, text, below(text.size()), below(200));
        break;
      default:
        out.insert(at, std::string(1 + below(20), "9-[{\"\\,\xff"[below(8)]));
    }
  }
  return out;
}

// Any bytes give a trace or an error; a trace that is accepted can be written and read again.
TEST(TraceJson, SurvivesDamage) {
  const std::string text = trace_to_json(testing::SyntheticTrace(3, 2).trace());
  std::mt19937 random(20261120);
  int accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto trace = trace_from_json(damaged(text, random), "t.json");
    if (!trace) {
      EXPECT_FALSE(trace.error().message.empty());
      for (const char c : trace.error().text()) ASSERT_TRUE(c >= ' ' && c <= '~');
      continue;
    }
    ++accepted;
    const std::string again = trace_to_json(*trace);
    ASSERT_EQ(trace_to_json(*trace_from_json(again, "t.json")), again);
  }
  EXPECT_GT(accepted, 50);
}

TEST(TraceJson, SurvivesTruncationAtEveryByte) {
  const std::string text = trace_to_json(testing::SyntheticTrace(2, 2).trace());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(error_of(text.substr(0, length)), "") << length;
  }
}

// Our scanner says "not JSON" exactly when the library does: the value of an unknown key may be
// anything, so only the grammar decides whether the trace around it is read.
TEST(JsonScanner, AgreesWithTheLibrary) {
  const std::string tail = trace_to_json(testing::SyntheticTrace(1, 1).trace()).substr(1);
  const std::string value =
      R"([[], {}, {"": null}, true,false, -0, 1.5e+10 ,12E-3, "\u20AC\ud83d\ude00\n", )"
      "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\", [1, [2, {\"a\" : [ ]}]], 0.5, "
      "99999999999999999999]";
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string document =
        "{\"unknown\":" + (i == 0 ? value : damaged(value, random)) + "," + tail;
    const auto trace = trace_from_json(document, "t.json");
    // 1e9999 is JSON, but the library has no number for it; an unknown key may hold it.
    bool library_accepts = true;
    try {
      EXPECT_TRUE(Json::parse(document).is_object());
    } catch (const Json::parse_error&) {
      library_accepts = false;
    } catch (const Json::out_of_range&) {
      continue;
    }
    if (library_accepts) {
      ++good;
      EXPECT_TRUE(trace || trace.error().message.find("JSON") == std::string::npos)
          << trace.error().text() << "\n"
          << document;
    } else {
      EXPECT_FALSE(trace) << document;
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_LT(good, 3900);
}

void collect(const Json& schema, const Json& value, const std::string& place, const Json& defs) {
  if (schema.contains("$ref")) {
    if (schema["$ref"] == "#") return;  // a step in micro-batches, whose keys are those above
    const std::string name = schema["$ref"].get<std::string>();
    return collect(defs.at(name.substr(std::string("#/$defs/").size())), value, place, defs);
  }
  if (!value.is_object()) return;
  std::set<std::string> written;
  for (const auto& [key, _] : value.items()) written.insert(key);
  std::set<std::string> listed;
  for (const auto& [key, _] : schema.at("properties").items()) listed.insert(key);
  std::set<std::string> required;
  for (const Json& key : schema.at("required")) required.insert(key.get<std::string>());
  EXPECT_EQ(listed, written) << place;
  // Later minor schemas add what a reader can do without (Rule::optional_factor).
  const std::set<std::string> optional{"least_compute",
                                       "rest_gain",
                                       "start_gap_ns",
                                       "handover_ns",
                                       "compute_copy_gap_ns",
                                       "woken_launch",
                                       "item_bytes",
                                       "parameter",
                                       "layer_tensors",
                                       "primitive",
                                       "micro_batches",
                                       "divided",
                                       "autocast",
                                       "grad_scaler",
                                       "adopted_allocations",
                                       "clean_spread",
                                       "host_update_ns",
                                       "host_update_ns_per_gib",
                                       "host_update_interference"};
  std::set<std::string> always;
  std::set_difference(written.begin(), written.end(), optional.begin(), optional.end(),
                      std::inserter(always, always.end()));
  EXPECT_EQ(required, always) << place;
  for (const auto& [key, child] : value.items()) {
    ASSERT_TRUE(schema["properties"].contains(key)) << place << "/" << key;
    collect(schema["properties"][key], child, place + "/" + key, defs);
  }
}

TEST(TraceJson, AnEarlierFileHasNoAutocastAndNoScaler) {
  Trace trace = small_trace();
  trace.run.autocast = "bf16";
  trace.run.grad_scaler = "init=8,growth=2,backoff=0.5,interval=100";
  trace.quality.adopted_allocations = 7;
  trace.overhead.clean_spread = 12'000;
  Json json = Json::parse(trace_to_json(trace));
  const auto back = trace_from_json(json.dump(), "t.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->run.autocast, "bf16");
  EXPECT_EQ(back->run.grad_scaler, trace.run.grad_scaler);
  EXPECT_EQ(back->quality.adopted_allocations, 7);
  EXPECT_EQ(back->overhead.clean_spread, 12'000);
  json["run"].erase("autocast");
  json["run"].erase("grad_scaler");
  json["quality"].erase("adopted_allocations");
  json["overhead"].erase("clean_spread");
  const auto earlier = trace_from_json(json.dump(), "t.json");
  ASSERT_TRUE(earlier) << earlier.error().text();
  EXPECT_EQ(earlier->quality.adopted_allocations, 0);
  EXPECT_EQ(earlier->overhead.clean_spread, 0);
  EXPECT_EQ(earlier->run.autocast, "");
  EXPECT_EQ(earlier->run.grad_scaler, "");
}

TEST(TraceJson, StepsInMicroBatchesAreTracesInOne) {
  const Trace trace = in_micro_batches();
  const std::string text = trace_to_json(trace);
  const auto back = trace_from_json(text, "t.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(trace_to_json(*back), text);
  ASSERT_EQ(back->divided.size(), 2u);
  const Trace& part = *back->divided[1];
  ASSERT_EQ(part.micro_batches.size(), 1u);
  EXPECT_EQ(part.string(part.micro_batches.segment[0]), "head");
  EXPECT_EQ(part.micro_batches.count[0], 5);
  EXPECT_EQ(part.events.kind, trace.events.kind);
  // As a reader of an earlier version sees it.
  Json json = Json::parse(text);
  json.erase("divided");
  json.erase("micro_batches");
  EXPECT_EQ(error_of(json.dump()), "");
}

TEST(TraceJson, MistakesInMicroBatchesAreNamedWhereTheyAre) {
  const Json good = Json::parse(trace_to_json(in_micro_batches()));
  const auto error = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return error_of(json.dump());
  };
  EXPECT_EQ(error("/divided", 3), "/divided: is an integer, not an array of objects");
  EXPECT_EQ(error("/divided/1", 3), "/divided/1: is an integer, not an object");
  EXPECT_EQ(error("/divided/1/events/kind/0", "x"),
            "/divided/1/events/kind/0: is a string, not an integer");
  EXPECT_EQ(error("/divided/0/run/batch", -1), "/divided/0/run/batch: is -1, which is negative");
  EXPECT_EQ(error("/divided/1/schema/major", 2),
            "/divided/1/schema/major: is 2; this version reads 1");
  EXPECT_EQ(error("/divided/1/micro_batches/count/0", 1),
            "/divided/1/micro_batches/count/0: is no number of parts, which is 2 or more");
  EXPECT_EQ(error("/divided/0/run/model", "other"),
            "/divided/0: is of another run: model, batch, dtype, optimizer, threads, ..");
  EXPECT_EQ(error("/divided/0/divided", Json::array({good})),
            "/divided/0/divided/0: is a step in parts inside of another one");
  Json json = good;
  json["divided"][1].erase("ops");
  EXPECT_EQ(error_of(json.dump()), "/divided/1/ops: is missing");
  json = good;
  json["divided"][0] = small_json();
  EXPECT_EQ(error_of(json.dump()), "/divided/0: is of a step without micro-batches");
  EXPECT_EQ(error("/divided/1/micro_batches/count/0", 2),
            "/divided/1: is in the same micro-batches as another one");
  EXPECT_NE(error("/divided/1/run/batch", 77).find("/divided/1: is of another run"),
            std::string::npos);
  json = good;
  json["divided"] = Json::array();
  for (int i = 0; i < 65; ++i) json["divided"].push_back(good["divided"][0]);
  EXPECT_NE(error_of(json.dump()).find("more than 64 steps in parts"), std::string::npos);
}

// The limits are of the whole document.
TEST(TraceJson, StepsInMicroBatchesShareTheLimits) {
  const std::string text = trace_to_json(in_micro_batches());
  const std::string alone = trace_to_json(small_trace());
  TraceLimits limits;
  limits.integers = 1;
  while (!trace_from_json(alone, "t.json", limits)) ++limits.integers;
  EXPECT_FALSE(trace_from_json(text, "t.json", limits));
  limits.integers *= 3;
  limits.integers += 10;  // the tables of micro-batches
  EXPECT_TRUE(trace_from_json(text, "t.json", limits));
}

TEST(TraceSchema, ListsExactlyWhatIsWritten) {
  std::ifstream file(std::string(STOWAGE_SOURCE_DIR) + "/traces/trace.schema.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json schema = Json::parse(text, nullptr, false);
  ASSERT_FALSE(schema.is_discarded());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["properties"]["schema"]["properties"]["major"]["const"], kTraceSchemaMajor);
  collect(schema, Json::parse(trace_to_json(in_micro_batches())), "", schema["$defs"]);
}

}  // namespace
}  // namespace stowage
