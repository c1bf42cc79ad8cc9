#include "traces/trace_json.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/columns.h"
#include "traces/enum_names.h"
#include "traces/trace_reader.h"
#include "traces/validate.h"

namespace stowage {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann's parse events, handed on to the reader.
class SaxAdapter {
 public:
  explicit SaxAdapter(TraceReader& reader) : reader_(reader) {}

  bool null() { return reader_.foreign("null"); }
  bool boolean(bool value) { return reader_.foreign(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) { return reader_.integer(value); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return reader_.foreign("an integer beyond 64 bits");
    }
    return reader_.integer(static_cast<std::int64_t>(value));
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return reader_.foreign(whole ? "an integer beyond 64 bits" : "a number with a fraction");
  }
  bool string(std::string& value) { return reader_.text(value); }
  bool binary(Json::binary_t&) { return reader_.foreign("binary"); }
  bool start_object(std::size_t) { return reader_.begin_object(); }
  bool key(std::string& name) { return reader_.key(name); }
  bool end_object() { return reader_.end_object(); }
  bool start_array(std::size_t) { return reader_.begin_array(); }
  bool end_array() { return reader_.end_array(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    return reader_.fail("is not valid JSON at byte " + std::to_string(position) + reason(e.what()),
                        "the file is damaged or of another kind");
  }

 private:
  // ": unexpected end of input" out of the library's long message, short and printable.
  static std::string reason(std::string_view what) {
    const std::size_t at = what.rfind(" - ");
    const std::size_t colon = what.rfind("; expected");
    if (at == std::string_view::npos) return "";
    std::string out(what.substr(at + 3, colon == std::string_view::npos || colon < at
                                            ? std::string_view::npos
                                            : colon - at - 3));
    const std::size_t last = out.find("; last read:");
    if (last != std::string::npos) out.resize(last);
    if (out.size() > 120) out.resize(120);
    for (char& c : out) {
      if (c < ' ' || c > '~') c = '?';
    }
    return ": " + out;
  }

  TraceReader& reader_;
};

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

}  // namespace

Result<Trace> trace_from_json(std::string_view text, const std::string& file) {
  Trace trace;
  TraceReader reader(trace, file, text.size());
  SaxAdapter adapter(reader);
  const bool parsed = Json::sax_parse(text.data(), text.data() + text.size(), &adapter);
  if (!parsed || !reader.finish()) return reader.error();
  const Status valid = validate(trace, file);
  if (!valid) return valid.error();
  return trace;
}

std::string trace_to_json(const Trace& trace) {
  Writer out;
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
  out.close('}');
  return out.take();
}

}  // namespace stowage
