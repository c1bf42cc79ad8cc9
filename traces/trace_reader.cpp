#include "traces/trace_reader.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "traces/enum_names.h"
#include "traces/size_text.h"

namespace stowage {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxShown = 80;  // of a foreign string inside a message

// What an integer of the file becomes in memory; false when it does not fit.
template <class T>
bool store(T& out, std::int64_t value) {
  if constexpr (std::is_same_v<T, bool>) {
    out = value == 1;
    return value == 0 || value == 1;
  } else if constexpr (std::is_enum_v<T>) {
    out = static_cast<T>(value);
    return value >= 0 && value <= std::numeric_limits<std::uint8_t>::max();
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    out = static_cast<T>(value);
    return value == 0 || value == 1;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    out = value;
    return true;
  } else if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, int>) {
    out = static_cast<T>(value);
    return value == static_cast<std::int64_t>(out);
  } else {
    return store(out.value, value);  // an id
  }
}

template <class T>
bool assign(void* target, std::int64_t value) {
  return store(*static_cast<T*>(target), value);
}

template <class T>
bool append(void* target, std::int64_t value) {
  T element{};
  if (!store(element, value)) return false;
  static_cast<std::vector<T>*>(target)->push_back(element);
  return true;
}

bool append_to_last(void* target, std::int64_t value) {
  static_cast<std::vector<std::vector<std::int64_t>>*>(target)->back().push_back(value);
  return true;
}

template <class T>
std::size_t size_of(const void* target) {
  return static_cast<const std::vector<T>*>(target)->size();
}

template <class T>
void reserve_in(void* target, std::size_t rows) {
  static_cast<std::vector<T>*>(target)->reserve(rows);
}

// A foreign string inside a message: short and printable.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, kMaxShown));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kMaxShown ? out + ".." : out;
}

std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

}  // namespace

struct TraceReader::Nodes {
  template <class T>
  static Node integers(const char* key, std::vector<T>& target) {
    return {.key = key,
            .kind = Kind::integers,
            .target = &target,
            .push = append<T>,
            .size = size_of<T>,
            .reserve = reserve_in<T>};
  }
  static Node texts(const char* key, std::vector<std::string>& target) {
    return {.key = key, .kind = Kind::texts, .target = &target, .size = size_of<std::string>};
  }
  static Node text(const char* key, std::string& target) {
    return {.key = key, .kind = Kind::text, .target = &target};
  }
  template <class T>
  static Node integer(const char* key, T& target) {
    return {.key = key,
            .kind = std::is_same_v<T, bool> ? Kind::flag : Kind::integer,
            .target = &target,
            .push = assign<T>};
  }

  template <class T>
  static Node value(const char* key, T& target) {
    if constexpr (Section<T>)
      return section(key, target);
    else if constexpr (std::is_same_v<T, std::string>)
      return text(key, target);
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      return texts(key, target);
    else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
      return integers(key, target);
    else
      return integer(key, target);
  }
  template <Section T>
  static Node section(const char* key, T& target) {
    Node node{.key = key};
    visit_fields(target, [&](const char* name, auto& field, Rule rule) {
      node.children.push_back(value(name, field));
      node.children.back().optional = rule == Rule::optional_factor ||
                                      rule == Rule::optional_time || rule == Rule::optional_count ||
                                      rule == Rule::optional_text;
    });
    return node;
  }
  template <class Table>
  static Node table(const char* key, Table& target, std::int64_t& rows) {
    Node node{.key = key, .kind = Kind::table};
    node.children.push_back(
        {.key = "n", .kind = Kind::count, .target = &rows, .push = assign<std::int64_t>});
    visit_columns(target, [&](const char* name, auto& column, Rule rule) {
      node.children.push_back(integers(name, column));
      node.children.back().optional = rule == Rule::optional_column || rule == Rule::optional_row ||
                                      rule == Rule::optional_flag;
    });
    return node;
  }
};

TraceReader::TraceReader(Trace& trace, const std::string& file, std::size_t text_bytes,
                         const TraceLimits& limits)
    : trace_(trace),
      file_(file),
      limits_(limits),
      integers_left_(limits.integers),
      texts_left_(limits.texts),
      // Every value takes two characters at least.
      unreserved_(std::min(text_bytes / 2, limits.integers)) {
  skipped_.kind = Kind::skipped;
  Node schema{.key = "schema"};
  schema.children.push_back(Nodes::text("name", schema_name_));
  schema.children.push_back(Nodes::integer("major", trace.schema.major));
  schema.children.push_back(Nodes::integer("minor", trace.schema.minor));
  schema.children.push_back(Nodes::text("writer", trace.schema.writer));
  schema.children.push_back(Nodes::texts("features", trace.schema.features));
  root_.children.push_back(std::move(schema));

  Node legend{.key = "legend"};
  std::size_t next = 0;
  visit_enums([&](const char* key, auto) {
    legend.children.push_back(Nodes::texts(key, legend_[next++]));
  });
  root_.children.push_back(std::move(legend));

  visit_sections(trace, [&](const char* key, auto& section) {
    root_.children.push_back(Nodes::section(key, section));
  });
  root_.children.push_back(Nodes::text("fingerprint", trace.fingerprint));
  root_.children.push_back(Nodes::texts("strings", trace.strings));
  root_.children.push_back({.key = "lists",
                            .kind = Kind::lists,
                            .target = &trace.lists,
                            .push = append_to_last,
                            .size = size_of<std::vector<std::int64_t>>});
  visit_tables(trace, [&](const char* key, auto& table) {
    root_.children.push_back(Nodes::table(key, table, table_rows_));
    root_.children.back().optional = kOptionalTable<std::remove_cvref_t<decltype(table)>>;
  });
  root_.children.push_back({.key = "divided",
                            .kind = Kind::traces,
                            .target = &trace.divided,
                            .size = size_of<std::shared_ptr<const Trace>>,
                            .optional = true});
  node_ = &root_;
}

bool TraceReader::text(std::string& value) {
  if (part_reader_ != nullptr) return from_part(part_reader_->text(value));
  if (skipping_ > 0 || node_->kind == Kind::skipped) return true;
  if (value.size() > limits_.text_bytes) {
    return fail("is a string of more than " +
                    format_bytes(static_cast<Bytes>(limits_.text_bytes), ByteUnits::binary),
                "this is no trace that Stowage writes");
  }
  if (node_->kind == Kind::text) {
    *static_cast<std::string*>(node_->target) = std::move(value);
    return true;
  }
  if (node_->kind == Kind::texts && in_array()) {
    if (texts_left_ == 0) return fail_many(limits_.texts, "strings");
    --texts_left_;
    static_cast<std::vector<std::string>*>(node_->target)->push_back(std::move(value));
    return true;
  }
  return fail_type("a string");
}

bool TraceReader::foreign(const char* what) {
  if (part_reader_ != nullptr) return from_part(part_reader_->foreign(what));
  if (skipping_ > 0 || node_->kind == Kind::skipped) return true;
  return fail_type(what);
}

bool TraceReader::other_integer(std::int64_t value) {
  if (part_reader_ != nullptr) return from_part(part_reader_->integer(value));
  if (skipping_ > 0 || node_->kind == Kind::skipped) return true;
  const Kind kind = node_->kind;
  if (kind == Kind::count) {
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) return fail_range(value);
  } else if (kind != Kind::integer && kind != Kind::flag) {
    return fail_type("an integer");
  }
  return node_->push(node_->target, value) || fail_range(value);
}

bool TraceReader::begin_object() {
  if (part_reader_ != nullptr) return from_part(part_reader_->begin_object());
  if (++depth_ > kMaxDepth) return fail("is nested more than 64 levels deep", "a trace has 4");
  if (skipping_ > 0 || node_->kind == Kind::skipped) {
    ++skipping_;
    return true;
  }
  if (node_->kind == Kind::traces && in_array()) return begin_part();
  if (node_->kind != Kind::object && node_->kind != Kind::table) return fail_type("an object");
  if (node_->kind == Kind::table) table_rows_ = -1;
  frames_.push_back({node_, false});
  return true;
}

bool TraceReader::key(const std::string& name) {
  if (part_reader_ != nullptr) return from_part(part_reader_->key(name));
  if (skipping_ > 0) return true;
  std::vector<Node>& children = frames_.back().node->children;
  const auto child = std::find_if(children.begin(), children.end(),
                                  [&](const Node& node) { return node.key == name; });
  if (child == children.end()) {
    node_ = &skipped_;
    return true;
  }
  node_ = &*child;
  if (child->seen) return fail("appears twice");
  child->seen = true;
  return true;
}

bool TraceReader::end_object() {
  if (part_reader_ != nullptr) {
    if (!from_part(part_reader_->end_object())) return false;
    return !part_reader_->frames_.empty() || end_part();
  }
  --depth_;
  if (skipping_ > 0) {
    --skipping_;
    return true;
  }
  Node& object = *frames_.back().node;
  node_ = &skipped_;  // nothing is awaited: errors name the object itself
  for (const Node& child : object.children) {
    if (child.seen || child.optional) continue;
    const char* hint = &object == &root_ ? "is it a Stowage trace?" : "";
    return fail_at(pointer() + "/" + escaped(child.key), "is missing", hint);
  }
  if (object.key == "schema" && !check_schema()) return false;
  if (object.kind == Kind::table && !check_table(object)) return false;
  frames_.pop_back();
  return true;
}

bool TraceReader::begin_array() {
  if (part_reader_ != nullptr) return from_part(part_reader_->begin_array());
  if (++depth_ > kMaxDepth) return fail("is nested more than 64 levels deep", "a trace has 4");
  if (skipping_ > 0 || node_->kind == Kind::skipped) {
    ++skipping_;
    return true;
  }
  const bool inside = in_array();
  switch (node_->kind) {
    case Kind::integers:
      if (inside) return fail_type("an array");
      push_ = node_->push;
      if (frames_.back().node->kind == Kind::table && table_rows_ > 0) {
        const std::size_t rows = std::min(static_cast<std::size_t>(table_rows_), unreserved_);
        unreserved_ -= rows;
        node_->reserve(node_->target, rows);
      }
      break;
    case Kind::texts:
    case Kind::traces:
      if (inside) return fail_type("an array");
      break;
    case Kind::lists:
      if (frames_.size() > 2) return fail_type("an array");
      if (inside) {
        if (trace_.lists.size() == limits_.lists) return fail_many(limits_.lists, "lists");
        trace_.lists.emplace_back();
        push_ = node_->push;
      }
      break;
    default:
      return fail_type("an array");
  }
  frames_.push_back({node_, true});
  return true;
}

bool TraceReader::end_array() {
  if (part_reader_ != nullptr) return from_part(part_reader_->end_array());
  --depth_;
  if (skipping_ > 0) {
    --skipping_;
    return true;
  }
  push_ = nullptr;
  frames_.pop_back();
  if (!in_array()) node_ = &skipped_;
  return true;
}

bool TraceReader::begin_part() {
  --depth_;  // its reader counts them
  if (is_part_) return fail("is a step in parts inside of another one", "record the step again");
  if (trace_.divided.size() == limits_.divided) {
    return fail("is beyond what a trace may hold: more than " + std::to_string(limits_.divided) +
                    " steps in parts",
                "record fewer micro-batches");
  }
  part_ = std::make_shared<Trace>();
  TraceLimits limits = limits_;
  limits.integers = integers_left_;
  limits.texts = texts_left_;
  part_reader_ = std::make_unique<TraceReader>(*part_, file_, 2 * unreserved_, limits);
  part_reader_->is_part_ = true;
  return from_part(part_reader_->begin_object());
}

bool TraceReader::end_part() {
  if (!from_part(part_reader_->finish())) return false;
  integers_left_ = part_reader_->integers_left_;
  texts_left_ = part_reader_->texts_left_;
  unreserved_ = std::min(unreserved_, part_reader_->unreserved_);
  part_reader_ = nullptr;
  trace_.divided.push_back(std::move(part_));
  return true;
}

bool TraceReader::from_part(bool good) {
  if (good) return true;
  const Error& error = part_reader_->error();
  return fail_at("/divided/" + std::to_string(trace_.divided.size()) + error.pointer, error.message,
                 error.hint);
}

bool TraceReader::check_schema() {
  if (schema_name_ != "stowage-trace") {
    return fail_at("/schema/name", "is '" + shown(schema_name_) + "', not 'stowage-trace'",
                   "this file is no Stowage trace");
  }
  if (trace_.schema.major == kTraceSchemaMajor) return true;
  const bool newer = trace_.schema.major > kTraceSchemaMajor;
  return fail_at("/schema/major",
                 "is " + std::to_string(trace_.schema.major) + "; this version reads " +
                     std::to_string(kTraceSchemaMajor),
                 newer ? "use a newer version of stowage, or record again" : "record again");
}

bool TraceReader::check_table(const Node& table) {
  for (const Node& column : table.children) {
    if (column.kind != Kind::integers || (column.optional && !column.seen)) continue;
    const std::size_t size = column.size(column.target);
    if (size == static_cast<std::size_t>(table_rows_)) continue;
    return fail_at(
        pointer() + "/" + escaped(column.key),
        "has " + std::to_string(size) + " values, but n is " + std::to_string(table_rows_),
        "every column of a table has n values");
  }
  return true;
}

bool TraceReader::finish() {
  std::size_t next = 0;
  bool good = true;
  visit_enums([&](const char* legend_key, auto kind) {
    using Enum = decltype(kind);
    const std::vector<std::string>& legend = legend_[next++];
    const auto known = enum_names<Enum>();
    std::vector<int> number(std::min<std::size_t>(legend.size(), 256), -1);
    for (std::size_t i = 0; i < number.size(); ++i) {
      const auto at = std::find(known.begin(), known.end(), std::string_view(legend[i]));
      if (at != known.end()) number[i] = static_cast<int>(at - known.begin());
    }
    visit_tables(trace_, [&](const char* table_key, auto& table) {
      visit_columns(table, [&](const char* column_key, auto& column, Rule) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(column)>, std::vector<Enum>>) {
          for (std::size_t row = 0; good && row < column.size(); ++row) {
            const auto value = static_cast<std::size_t>(column[row]);
            if (value < number.size() && number[value] >= 0) {
              column[row] = static_cast<Enum>(number[value]);
              continue;
            }
            const std::string place =
                std::string("/") + table_key + "/" + column_key + "/" + std::to_string(row);
            const std::string text = "is " + std::to_string(value);
            good = value < legend.size() ? fail_at(place,
                                                   text + " ('" + shown(legend[value]) +
                                                       "'), which this "
                                                       "version does not know",
                                                   "use a newer version of stowage")
                                         : fail_at(place,
                                                   text + ", but /legend/" + legend_key + " has " +
                                                       std::to_string(legend.size()) + " names",
                                                   "");
          }
        }
      });
    });
  });
  if (good) derive_missing();
  return good;
}

// Columns that files of earlier minor schemas do not have.
void TraceReader::derive_missing() {
  Storages& storages = trace_.storages;
  if (storages.parameter.size() != storages.size()) storages.parameter.assign(storages.size(), {});
  Ops& ops = trace_.ops;
  if (ops.primitive.size() != ops.size()) ops.primitive.assign(ops.size(), 0);
  Tensors& tensors = trace_.tensors;
  if (tensors.item_bytes.size() == tensors.size()) return;
  tensors.item_bytes.clear();
  tensors.item_bytes.reserve(tensors.size());
  for (const DType dtype : tensors.dtype) tensors.item_bytes.push_back(element_bytes(dtype));
}

std::string TraceReader::pointer() const {
  std::string out;
  for (std::size_t i = 1; i < frames_.size(); ++i) {
    const Node* node = frames_[i].node;
    if (node == frames_[i - 1].node)
      out += "/" + std::to_string(node->size(node->target) - 1);
    else
      out += "/" + escaped(node->key);
  }
  if (in_array()) {
    const Node* node = frames_.back().node;
    const bool inner = frames_.size() > 2 && frames_[frames_.size() - 2].array;
    out += "/" + std::to_string(inner ? trace_.lists.back().size() : node->size(node->target));
  } else if (!frames_.empty() && node_ != &skipped_ && node_ != frames_.back().node) {
    out += "/" + escaped(node_->key);
  }
  return out;
}

bool TraceReader::fail(std::string message, std::string hint) {
  return fail_at(pointer(), std::move(message), std::move(hint));
}

bool TraceReader::fail_at(std::string place, std::string message, std::string hint) {
  if (error_.message.empty()) {
    error_.code = ErrorCode::bad_input;
    error_.file = file_;
    error_.pointer = std::move(place);
    error_.message = std::move(message);
    error_.hint = std::move(hint);
  }
  return false;
}

bool TraceReader::fail_range(std::int64_t value) {
  if (node_->kind == Kind::flag) return fail("is " + std::to_string(value) + ", not 0 or 1");
  return fail("is " + std::to_string(value) + ", which is out of range");
}

bool TraceReader::fail_many(std::size_t limit, const char* what) {
  return fail("is beyond what a trace may hold: more than " + std::to_string(limit) + " " + what,
              "record fewer ops, or a smaller model");
}

bool TraceReader::fail_type(const char* got) {
  const char* want = "an integer";
  switch (node_->kind) {
    case Kind::object:
    case Kind::table:
      want = "an object";
      break;
    case Kind::text:
      want = "a string";
      break;
    case Kind::texts:
      want = in_array() ? "a string" : "an array of strings";
      break;
    case Kind::integers:
      if (!in_array()) want = "an array of integers";
      break;
    case Kind::traces:
      want = in_array() ? "an object" : "an array of objects";
      break;
    case Kind::lists:
      if (!in_array())
        want = "an array of arrays";
      else if (frames_.size() == 2)
        want = "an array of integers";
      break;
    case Kind::count:
    case Kind::integer:
    case Kind::flag:
    case Kind::skipped:
      break;
  }
  const char* hint = frames_.empty() ? "is it a Stowage trace?" : "";
  if (node_->key == "schema") hint = "is it a Stowage trace? a plan, for one, has a string here";
  return fail(std::string("is ") + got + ", not " + want, hint);
}

}  // namespace stowage
