// The pickle, read back by a small reader of the opcodes that PyTorch's page knows.
#include "report/export_memory_viz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "report/pickle.h"
#include "report/text_escape.h"
#include "tests/report/odd_names.h"
#include "tests/support/small_trace.h"

namespace stowage::report_tests {
namespace {

using Json = nlohmann::json;

class Unpickler {
 public:
  explicit Unpickler(const std::string& data) : data_(data) {}

  Json read() {
    while (true) {
      const unsigned op = byte();
      switch (op) {
        case 0x80:
          EXPECT_EQ(byte(), 4U);
          break;
        case '}':
          stack_.push_back(std::make_shared<Json>(Json::object()));
          break;
        case ']':
          stack_.push_back(std::make_shared<Json>(Json::array()));
          break;
        case '(':
          marks_.push_back(stack_.size());
          break;
        case 'e':
        case 'u':
          collect(op == 'e');
          break;
        case 'K':
          push(byte());
          break;
        case 'J':
          push(static_cast<std::int32_t>(number(4)));
          break;
        case 0x8A:
          EXPECT_EQ(byte(), 8U);
          push(static_cast<std::int64_t>(number(8)));
          break;
        case 'X': {
          const std::size_t size = number(4);
          push(data_.substr(at_, size));
          at_ += size;
          break;
        }
        case 0x94:
          memo_.push_back(*stack_.back());
          break;
        case 'j':
          push(memo_.at(number(4)));
          break;
        case '.':
          EXPECT_EQ(at_, data_.size());
          EXPECT_EQ(stack_.size(), 1U);
          return *stack_.back();
        default:
          ADD_FAILURE() << "opcode " << op << " at " << at_;
          return nullptr;
      }
    }
  }

 private:
  unsigned byte() { return static_cast<unsigned char>(data_.at(at_++)); }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  template <class T>
  void push(T value) {
    stack_.push_back(std::make_shared<Json>(value));
  }
  void collect(bool is_list) {
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    Json& into = *stack_[mark - 1];
    for (std::size_t i = mark; i < stack_.size(); i += is_list ? 1 : 2) {
      if (is_list) {
        into.push_back(*stack_[i]);
      } else {
        into[stack_[i]->get<std::string>()] = *stack_[i + 1];
      }
    }
    stack_.resize(mark);
  }

  const std::string& data_;
  std::size_t at_ = 0;
  std::vector<std::shared_ptr<Json>> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Json> memo_;
};

// What the page and _memory_viz.py read; returns the most bytes that are allocated at once.
std::int64_t check_snapshot(const Json& snapshot) {
  std::map<std::int64_t, std::int64_t> live;  // address -> bytes
  std::int64_t now = 0;
  std::int64_t most = 0;
  bool unknown = false;
  const Json& events = snapshot.at("device_traces").at(0);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Json& event = events[i];
    const auto action = event.at("action").get<std::string>();
    const auto address = event.at("addr").get<std::int64_t>();
    const auto bytes = event.at("size").get<std::int64_t>();
    unknown = unknown || event.at("category") == "unknown";
    EXPECT_EQ(event.at("stream"), 0);
    if (action == "alloc") {
      const auto next = live.lower_bound(address);
      EXPECT_TRUE(next == live.end() || address + bytes <= next->first);
      EXPECT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= address);
      live[address] = bytes;
      now += bytes;
      for (const Json& frame : event.at("frames")) {
        EXPECT_TRUE(frame.at("name").is_string() && frame.at("filename").is_string() &&
                    frame.at("line").is_number());
      }
    } else if (action == "free_completed") {
      EXPECT_EQ(events[i - 1].at("action"), "free_requested");
      EXPECT_EQ(events[i - 1].at("addr"), address);
      EXPECT_EQ(live.erase(address), 1U);
      now -= bytes;
    }
    most = std::max(most, now);
  }
  EXPECT_TRUE(unknown) << "the page needs the category";
  // Segments: blocks fill them, and what is active in them is what the events left.
  std::int64_t active = 0;
  for (const Json& segment : snapshot.at("segments")) {
    auto at = segment.at("address").get<std::int64_t>();
    for (const Json& block : segment.at("blocks")) {
      EXPECT_EQ(block.at("address"), at);
      if (block.at("state") == "active_allocated") {
        EXPECT_EQ(live.at(at), block.at("requested_size"));
        ++active;
      }
      at += block.at("size").get<std::int64_t>();
    }
    EXPECT_EQ(at, segment.at("address").get<std::int64_t>() +
                      segment.at("total_size").get<std::int64_t>());
  }
  EXPECT_EQ(active, static_cast<std::int64_t>(live.size()));
  return most;
}

TEST(ExportMemoryViz, OddNamesStayNamesAndThePeakIsTheStepsPeak) {
  const Trace trace = odd_trace();
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  const report::Simulation simulation = simulated(index, plan);
  const std::string bytes =
      report::export_memory_viz(report::planned_step(trace, simulation, plan, "plan"));
  const Json snapshot = Unpickler(bytes).read();
  EXPECT_EQ(check_snapshot(snapshot), simulation.result.peak_requested);
  const Json& first = snapshot["device_traces"][0][0];
  EXPECT_EQ(first["frames"][0]["name"], report::valid_utf8(odd_name() + "op"));
  EXPECT_EQ(first["category"], "activation");
}

TEST(ExportMemoryViz, PeaksAreThoseOfTheReplayOnRandomPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    report::Simulation simulation;
    simulation.schedule = c.schedule;
    simulation.result = c.result;
    simulation.detail = c.detail;
    const std::string bytes = report::export_memory_viz(
        report::planned_step(c.trace, simulation, simulator::Plan{}, "random"));
    EXPECT_EQ(check_snapshot(Unpickler(bytes).read()), c.result.peak_requested);
  }
}

TEST(Pickle, WritesNumbersOfAllSizesAndBatches) {
  report::Pickle p;
  p.begin_list();
  const std::int64_t numbers[] = {0, 255, 256, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  for (const std::int64_t number : numbers) p.number(number);
  p.text("x");
  const std::uint32_t x = p.remember();
  p.recall(x);
  for (int i = 0; i < 2500; ++i) p.number(7);
  p.begin_dict();
  p.end_dict();
  p.end_list();
  const std::string bytes = p.finish();
  const Json json = Unpickler(bytes).read();
  ASSERT_EQ(json.size(), 8U + 2 + 2500 + 1);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(json[i], numbers[i]);
  EXPECT_EQ(json[8], "x");
  EXPECT_EQ(json[9], "x");
  EXPECT_EQ(json.back(), Json::object());
}

}  // namespace
}  // namespace stowage::report_tests
