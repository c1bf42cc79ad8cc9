#include "traces/validate.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "traces/columns.h"
#include "traces/enum_names.h"
#include "traces/trace_limits.h"
#include "traces/validate_checks.h"

namespace stowage {
namespace {

constexpr auto kMaxRows = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
constexpr std::int64_t kMaxSum = std::int64_t{1} << 62;

// Rows of the table that an id points into.
template <class Tag>
struct RowsOf;
template <>
struct RowsOf<StringId> {
  static std::size_t of(const Trace& t) { return t.strings.size(); }
  static constexpr const char* kTable = "strings";
};
template <>
struct RowsOf<ListId> {
  static std::size_t of(const Trace& t) { return t.lists.size(); }
  static constexpr const char* kTable = "lists";
};
template <>
struct RowsOf<LayerId> {
  static std::size_t of(const Trace& t) { return t.layers.size(); }
  static constexpr const char* kTable = "layers";
};
template <>
struct RowsOf<PhaseId> {
  static std::size_t of(const Trace& t) { return t.phases.size(); }
  static constexpr const char* kTable = "phases";
};
template <>
struct RowsOf<OpId> {
  static std::size_t of(const Trace& t) { return t.ops.size(); }
  static constexpr const char* kTable = "ops";
};
template <>
struct RowsOf<TensorId> {
  static std::size_t of(const Trace& t) { return t.tensors.size(); }
  static constexpr const char* kTable = "tensors";
};
template <>
struct RowsOf<StorageId> {
  static std::size_t of(const Trace& t) { return t.storages.size(); }
  static constexpr const char* kTable = "storages";
};
template <>
struct RowsOf<EventId> {
  static std::size_t of(const Trace& t) { return t.events.size(); }
  static constexpr const char* kTable = "events";
};
template <>
struct RowsOf<SavedId> {
  static std::size_t of(const Trace& t) { return t.saved.size(); }
  static constexpr const char* kTable = "saved";
};

// Why `value` breaks `rule`, or nothing.
std::optional<std::string> broken(Rule rule, std::int64_t value) {
  const std::string is = "is " + std::to_string(value);
  switch (rule) {
    case Rule::any:
    case Rule::row:
    case Rule::row_or_none:
    case Rule::optional_row:
    case Rule::optional_flag:
    case Rule::optional_text:
      return std::nullopt;
    case Rule::size:
    case Rule::size_or_unknown:
      if (value < (rule == Rule::size ? 0 : -1)) return is + ", a negative size";
      if (value > kMaxSize) return is + " bytes, an absurd size";
      return std::nullopt;
    case Rule::time:
    case Rule::optional_time:
      if (value < 0) return is + ", a negative time";
      if (value > kMaxTime) return is + " ns, an absurd time";
      return std::nullopt;
    case Rule::count:
    case Rule::optional_count:
      if (value < 0) return is + ", which is negative";
      return std::nullopt;
    case Rule::count_or_none:
      if (value < -1) return is + ", which is below -1";
      return std::nullopt;
    case Rule::positive:
    case Rule::optional_column:
      if (value < 1) return is + ", not positive";
      if (value > kMaxSize) return is + ", which is absurd";
      return std::nullopt;
    case Rule::factor:
      if (value < 1 || value > kPpm) return is + ", not in 1 ... 1000000 parts per million";
      return std::nullopt;
    case Rule::optional_factor:
      if (value < 0 || value > kPpm) return is + ", not in 0 ... 1000000 parts per million";
      return std::nullopt;
  }
  return std::nullopt;
}

// Fast test of the same; only a broken rule is put into words.
bool holds(Rule rule, std::int64_t value) {
  switch (rule) {
    case Rule::any:
    case Rule::row:
    case Rule::row_or_none:
    case Rule::optional_row:
    case Rule::optional_flag:
    case Rule::optional_text:
      return true;
    case Rule::size:
      return value >= 0 && value <= kMaxSize;
    case Rule::size_or_unknown:
      return value >= -1 && value <= kMaxSize;
    case Rule::time:
    case Rule::optional_time:
      return value >= 0 && value <= kMaxTime;
    case Rule::count:
    case Rule::optional_count:
      return value >= 0;
    case Rule::count_or_none:
      return value >= -1;
    case Rule::positive:
    case Rule::optional_column:
      return value >= 1 && value <= kMaxSize;
    case Rule::factor:
      return value >= 1 && value <= kPpm;
    case Rule::optional_factor:
      return value >= 0 && value <= kPpm;
  }
  return false;
}

class GeneralChecks {
 public:
  GeneralChecks(const Trace& trace, Findings& findings) : trace_(trace), findings_(findings) {}

  void run() {
    if (trace_.schema.major != kTraceSchemaMajor) findings_.add("/schema/major", "is not 1");
    visit_sections(trace_, [&](const char* key, const auto& section) {
      check_section(std::string("/") + key, section);
    });
    if (trace_.strings.size() > kMaxRows) findings_.add("/strings", "has too many rows");
    if (trace_.lists.size() > kMaxRows) findings_.add("/lists", "has too many rows");
    check_lists();
    visit_tables(trace_, [&](const char* key, const auto& table) { check_table(key, table); });
  }

 private:
  template <class T>
  void check_section(const std::string& place, const T& section) {
    visit_fields(section, [&](const char* key, const auto& field, Rule rule) {
      using Field = std::remove_cvref_t<decltype(field)>;
      const std::string name = place + "/" + key;
      if constexpr (Section<Field>) {
        check_section(name, field);
      } else if constexpr (std::is_same_v<Field, std::vector<std::int64_t>>) {
        for (std::size_t i = 0; i < field.size() && findings_.none(); ++i) {
          if (!holds(rule, field[i])) findings_.add(name, i, *broken(rule, field[i]));
        }
      } else if constexpr (std::is_integral_v<Field>) {
        const auto value = static_cast<std::int64_t>(field);
        if (!holds(rule, value)) findings_.add(name, *broken(rule, value));
      }
    });
  }

  void check_lists() {
    for (std::size_t i = 0; i < trace_.lists.size(); ++i) {
      for (std::size_t j = 0; j < trace_.lists[i].size(); ++j) {
        if (holds(Rule::size, trace_.lists[i][j])) continue;
        findings_.add(
            "/lists/" + std::to_string(i), j,
            "is " + std::to_string(trace_.lists[i][j]) + ", no shape or stride of a tensor");
        return;
      }
    }
  }

  template <class Table>
  void check_table(const char* table_key, const Table& table) {
    const std::size_t rows = table.size();
    const std::string place = std::string("/") + table_key;
    if (rows > kMaxRows) findings_.add(place, "has too many rows");
    visit_columns(table, [&](const char* key, const auto& column, Rule rule) {
      if (!findings_.none()) return;
      if (column.size() != rows) {
        findings_.add(place + "/" + key, "has " + std::to_string(column.size()) +
                                             " values, but the first column has " +
                                             std::to_string(rows));
        return;
      }
      check_column(place + "/" + key, column, rule);
    });
  }

  template <class T>
  void check_column(const std::string& place, const std::vector<T>& column, Rule rule) {
    if constexpr (std::is_enum_v<T>) {
      const std::size_t names = enum_names<T>().size();
      for (std::size_t i = 0; i < column.size(); ++i) {
        if (static_cast<std::size_t>(column[i]) < names) continue;
        findings_.add(place, i, "is no value of its enum");
        return;
      }
    } else if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < column.size(); ++i) {
        const auto value = static_cast<std::int64_t>(column[i]);
        if (holds(rule, value)) continue;
        findings_.add(place, i, *broken(rule, value));
        return;
      }
    } else {
      const auto rows = static_cast<std::int64_t>(RowsOf<T>::of(trace_));
      const bool may_be_none = rule == Rule::row_or_none || rule == Rule::optional_row;
      const std::int64_t lowest = may_be_none ? -1 : 0;
      for (std::size_t i = 0; i < column.size(); ++i) {
        if (column[i].value >= lowest && column[i].value < rows) continue;
        findings_.add(place, i,
                      "is " + std::to_string(column[i].value) + ", but /" + RowsOf<T>::kTable +
                          " has " + std::to_string(rows) + " rows" +
                          (lowest == -1 ? " (-1 = none)" : ""));
        return;
      }
    }
  }

  const Trace& trace_;
  Findings& findings_;
};

void check_sum(const std::vector<std::int64_t>& column, const char* place, Findings& findings) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    sum += column[i];  // each is at most 2^50
    if (sum <= kMaxSum) continue;
    findings.add(place, i, "makes the sum of the column absurd");
    return;
  }
}

void check_sums(const Trace& trace, Findings& findings) {
  check_sum(trace.layers.parameter_bytes, "/layers/parameter_bytes", findings);
  check_sum(trace.ops.duration, "/ops/duration", findings);
  check_sum(trace.gpu.duration, "/gpu/duration", findings);
  check_sum(trace.gpu.launch_duration, "/gpu/launch_duration", findings);
  check_sum(trace.gpu.bytes, "/gpu/bytes", findings);
  check_sum(trace.storages.bytes, "/storages/bytes", findings);
  check_sum(trace.storages.rounded_bytes, "/storages/rounded_bytes", findings);
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < trace.unpacks.size() && findings.none(); ++i) {
    const StorageId storage = trace.saved.storage[trace.unpacks.saved[i].index()];
    if (storage.valid()) moved += trace.storages.bytes[storage.index()];
    if (moved > kMaxSum) findings.add("/unpacks/saved", i, "makes the bytes to move absurd");
  }
  moved = 0;
  for (std::size_t i = 0; i < trace.saved.size() && findings.none(); ++i) {
    const StorageId storage = trace.saved.storage[i];
    if (storage.valid()) moved += trace.storages.bytes[storage.index()];
    if (moved > kMaxSum) findings.add("/saved/storage", i, "makes the bytes to move absurd");
  }
}

}  // namespace

namespace {

void check_micro_batches(const Trace& trace, Findings& findings) {
  std::set<StringId> segments;
  for (std::size_t i = 0; i < trace.micro_batches.size(); ++i) {
    if (trace.micro_batches.count[i] < 2) {
      findings.add("/micro_batches/count", i, "is no number of parts, which is 2 or more");
    } else if (!segments.insert(trace.micro_batches.segment[i]).second) {
      findings.add("/micro_batches/segment", i, "names a segment a second time");
    }
  }
}

// Segments and counts, in any order.
std::map<std::string, std::int32_t> parts_of(const Trace& trace) {
  std::map<std::string, std::int32_t> parts;
  for (std::size_t i = 0; i < trace.micro_batches.size(); ++i) {
    parts[trace.string(trace.micro_batches.segment[i])] = trace.micro_batches.count[i];
  }
  return parts;
}

bool is_other_run(const Run& a, const Run& b) {
  return a.model != b.model || a.batch != b.batch || a.seq != b.seq || a.dtype != b.dtype ||
         a.autocast != b.autocast || a.optimizer != b.optimizer || a.grad_scaler != b.grad_scaler ||
         a.threads != b.threads || a.deterministic != b.deterministic;
}

// The same step in other micro-batches.
Status check_divided(const Trace& trace, const std::string& file) {
  std::set<std::map<std::string, std::int32_t>> known;
  if (trace.divided.size() > kMostDivided) {
    return Error{ErrorCode::bad_input, "has more than " + std::to_string(kMostDivided) + " steps",
                 file, "/divided", "record fewer micro-batches"};
  }
  for (std::size_t i = 0; i < trace.divided.size(); ++i) {
    const Trace& part = *trace.divided[i];
    const std::string place = "/divided/" + std::to_string(i);
    Status valid = validate(part, file);
    if (!valid) {
      Error error = std::move(valid).error();
      error.pointer = place + error.pointer;
      return error;
    }
    const char* mistake =
        part.micro_batches.size() == 0         ? "is of a step without micro-batches"
        : !part.divided.empty()                ? "has steps in parts of its own"
        : trace.micro_batches.size() > 0       ? "stands in a step that has micro-batches itself"
        : !known.insert(parts_of(part)).second ? "is in the same micro-batches as another one"
        : is_other_run(part.run, trace.run)
            ? "is of another run: model, batch, dtype, optimizer, threads, .."
        : part.env.device != trace.env.device ? "is of another device"
                                              : nullptr;
    if (mistake != nullptr) {
      return Error{ErrorCode::bad_input, mistake, file, place, "record the step again"};
    }
  }
  return Unit{};
}

}  // namespace

Status validate(const Trace& trace, const std::string& file, Sites sites) {
  Findings findings;
  // In this order: each one relies on those before it.
  const auto steps = {
      +[](const Trace& t, Findings& f) { GeneralChecks(t, f).run(); },
      check_tree,
      check_tensors,
      check_events,
      check_storages,
      check_saved,
      check_sums,
      check_allocator,
      check_calibration,
      check_micro_batches,
  };
  for (const auto step : steps) {
    step(trace, findings);
    if (!findings.none()) return findings.error(file);
  }
  if (sites == Sites::unique) check_sites(trace, findings);
  if (!findings.none()) return findings.error(file);
  return check_divided(trace, file);
}

}  // namespace stowage
