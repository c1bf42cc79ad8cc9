#include "traces/trace_json.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/columns.h"
#include "traces/enum_names.h"
#include "traces/json_scanner.h"
#include "traces/trace_reader.h"
#include "traces/validate.h"

namespace stowage {
namespace {

using Json = nlohmann::json;

// Appends JSON to a text. Columns are millions of integers and go through std::to_chars; every
// string is written by the library.
class Writer {
 public:
  void open(char bracket) {
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  // Ahead of a container that is an element of an array.
  void element() {
    next();
    first_ = true;
  }
  void key(const char* name) {
    next();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    first_ = true;
  }
  void integer(std::int64_t value) {
    next();
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }
  void text(const std::string& value) {
    next();
    out_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  template <class T>
  void array(const std::vector<T>& values) {
    next();
    open('[');
    for (const T& element : values) value(element);
    close(']');
  }
  template <class T>
  void value(const T& v) {
    if constexpr (Section<T>) {
      next();
      open('{');
      visit_fields(v, [&](const char* name, const auto& field, Rule) {
        key(name);
        value(field);
      });
      close('}');
    } else if constexpr (std::is_same_v<T, std::string>) {
      text(v);
    } else if constexpr (std::is_same_v<T, bool>) {
      integer(v ? 1 : 0);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      integer(static_cast<std::int64_t>(v));
    } else if constexpr (requires { v.begin(); }) {
      array(v);
    } else {
      integer(v.value);  // an id
    }
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  // The comma between two values.
  void next() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  std::string out_;
  bool first_ = true;  // nothing stands before the next value in its container
};

void write_trace(const Trace& trace, Writer& out) {
  out.open('{');
  out.key("schema");
  out.open('{');
  out.key("name");
  out.text("stowage-trace");
  out.key("major");
  out.integer(trace.schema.major);
  out.key("minor");
  out.integer(trace.schema.minor);
  out.key("writer");
  out.text(trace.schema.writer);
  out.key("features");
  out.array(trace.schema.features);
  out.close('}');
  out.key("legend");
  out.open('{');
  visit_enums([&](const char* key, auto kind) {
    const auto names = enum_names<decltype(kind)>();
    out.key(key);
    out.array(std::vector<std::string>(names.begin(), names.end()));
  });
  out.close('}');
  visit_sections(trace, [&](const char* key, const auto& section) {
    out.key(key);
    out.value(section);
  });
  out.key("fingerprint");
  out.text(trace.fingerprint);
  out.key("strings");
  out.array(trace.strings);
  out.key("lists");
  out.array(trace.lists);
  visit_tables(trace, [&](const char* key, const auto& table) {
    out.key(key);
    out.open('{');
    out.key("n");
    out.integer(static_cast<std::int64_t>(table.size()));
    visit_columns(table, [&](const char* name, const auto& column, Rule) {
      out.key(name);
      out.array(column);
    });
    out.close('}');
  });
  if (!trace.divided.empty()) {
    out.key("divided");
    out.open('[');
    for (const auto& each : trace.divided) {
      out.element();
      write_trace(*each, out);
    }
    out.close(']');
  }
  out.close('}');
}

}  // namespace

Result<Trace> trace_from_json(std::string_view text, const std::string& file,
                              const TraceLimits& limits) {
  Trace trace;
  TraceReader reader(trace, file, text.size(), limits);
  if (!JsonScanner(text, reader).scan() || !reader.finish()) return reader.error();
  const Status valid = validate(trace, file);
  if (!valid) return valid.error();
  return trace;
}

std::string trace_to_json(const Trace& trace) {
  Writer out;
  write_trace(trace, out);
  return out.take();
}

}  // namespace stowage
