// The reader's state machine: takes a JSON document as a stream of values and puts each number
// straight into its column, without a document tree between. Knows no JSON text; traces/trace_json
// feeds it. Depth, types, ranges of integers, missing and repeated keys and the lengths of columns
// are checked here; what the numbers mean is checked by traces/validate.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/columns.h"
#include "traces/result.h"
#include "traces/trace.h"
#include "traces/trace_limits.h"

namespace stowage {

class TraceReader {
 public:
  // `text_bytes` bounds what is reserved for columns.
  TraceReader(Trace& trace, const std::string& file, std::size_t text_bytes,
              const TraceLimits& limits);
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // Each returns false at an error, which is then in error(); feed nothing after that.
  bool integer(std::int64_t value) {
    if (push_ != nullptr) {
      if (integers_left_ == 0) return fail_many(limits_.integers, "integers");
      --integers_left_;
      if (push_(node_->target, value)) return true;
      return fail_range(value);
    }
    return other_integer(value);
  }
  bool text(std::string& value);
  // A value that no part of a trace has: null, true, 1.5, an integer beyond 64 bits.
  bool foreign(const char* what);
  bool begin_object();
  bool key(const std::string& name);
  bool end_object();
  bool begin_array();
  bool end_array();

  // After the document: maps the enums by the legend, derives columns that an older file lacks.
  // Then the trace is complete.
  bool finish();

  // Records an error at the place reached, unless there is one already; always false.
  bool fail(std::string message, std::string hint = "");
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  enum class Kind : std::uint8_t {
    object,
    table,
    count,
    integer,
    flag,
    text,
    integers,
    texts,
    lists,
    traces,
    skipped,
  };
  using Push = bool (*)(void*, std::int64_t);
  using Size = std::size_t (*)(const void*);
  using Reserve = void (*)(void*, std::size_t);
  // A place of the document, and where its value goes.
  struct Node {
    std::string_view key;
    Kind kind = Kind::object;
    void* target = nullptr;
    Push push = nullptr;        // count, integer, flag, integers, lists
    Size size = nullptr;        // integers, texts, lists
    Reserve reserve = nullptr;  // integers
    std::vector<Node> children = {};
    bool optional = false;  // may be missing
    bool seen = false;
  };
  struct Frame {
    Node* node;
    bool array;
  };

  struct Nodes;  // builds the tree of nodes

  bool other_integer(std::int64_t value);
  bool fail_range(std::int64_t value);
  bool fail_type(const char* got);
  bool fail_many(std::size_t limit, const char* what);
  bool fail_at(std::string pointer, std::string message, std::string hint);
  bool check_schema();
  bool check_table(const Node& table);
  void derive_missing();
  // Elements of `divided` have a reader of their own, which all goes to while it is there.
  bool begin_part();
  bool end_part();
  bool from_part(bool good);
  [[nodiscard]] bool in_array() const { return !frames_.empty() && frames_.back().array; }
  [[nodiscard]] std::string pointer() const;

  Trace& trace_;
  std::string file_;
  TraceLimits limits_;
  std::size_t integers_left_;
  std::size_t texts_left_;
  std::size_t unreserved_;  // integers that the text may have besides those with room
  Node root_;
  Node* node_ = nullptr;  // whose value comes next, or the array being filled
  Push push_ = nullptr;   // of node_ while it is an array of integers
  std::vector<Frame> frames_;
  std::size_t depth_ = 0;         // open containers, skipped ones included
  std::size_t skipping_ = 0;      // open containers inside an unknown key
  std::int64_t table_rows_ = -1;  // "n" of the open table
  std::string schema_name_;
  std::array<std::vector<std::string>, 7> legend_;
  Node skipped_;
  bool is_part_ = false;
  std::shared_ptr<Trace> part_;
  std::unique_ptr<TraceReader> part_reader_;
  Error error_;
};

}  // namespace stowage
