#include "simulator/step/structured_step.h"

#include <algorithm>
#include <utility>

#include "simulator/step/step_composer.h"
#include "simulator/step/step_splicer.h"
#include "traces/fingerprint.h"

namespace stowage::simulator {
namespace {

std::shared_ptr<const Trace> not_owned(const Trace& trace) {
  return {std::shared_ptr<const Trace>(), &trace};
}

}  // namespace

StructuredStep::StructuredStep(const Trace& recording, std::vector<StepTemplate> templates)
    : recording_(&recording),
      templates_(std::move(templates)),
      on_(templates_.size(), false),
      composed_(
          std::make_shared<ComposedStep>(ComposedStep{StepLayout(not_owned(recording)), Trace()})),
      groups_(composed_->layout),
      prepared_(templates_.size()),
      naming_(templates_.size()),
      ranges_(templates_.size()),
      storages_(composed_->layout) {}

Result<std::unique_ptr<StructuredStep>> StructuredStep::make(const Trace& recording,
                                                             std::vector<StepTemplate> templates) {
  std::unique_ptr<StructuredStep> made(new StructuredStep(recording, std::move(templates)));
  StepLayout& layout = made->composed_->layout;
  for (const StepTemplate& each : made->templates_) {
    if (Status good = check_template(recording, each); !good) return std::move(good).error();
    if (each.leaves_out) {
      return Error{ErrorCode::bad_input,
                   "a template that leaves events out is none that a search turns on and off", "",
                   "", "unroll() makes the step without its update"};
    }
    for (const TemplateSource& source : each.sources) layout.add_source(source.name, source.trace);
  }
  for (std::size_t row = 0; row < made->templates_.size(); ++row) {
    if (Status done = made->prepare(row); !done) return std::move(done).error();
  }
  made->names_ = std::make_unique<StepNames>(layout.sources(), made->composed_->trace);
  write_head(layout, made->composed_->trace);
  if (Status done = made->rebuild(); !done) return std::move(done).error();
  return made;
}

StructuredStep::Edge StructuredStep::edge(EventId event) const {
  Edge made{event, {}};
  const PassRows& rows = *composed_->layout.sources().front().rows;
  for (std::size_t t = 0; t < kRowTables; ++t) {
    made.rows[t] = rows.first_at(static_cast<RowTable>(t), event);
  }
  return made;
}

// Lays the template out alone: what its pieces hold does not depend on the others.
Status StructuredStep::prepare(std::size_t row) {
  const StepTemplate& of = templates_[row];
  StepLayout& layout = composed_->layout;
  layout.clear_pieces();
  if (Status added = add_pieces({&of}, groups_, layout); !added) return added;
  if (Status done = layout.lay_out(); !done) return done;
  std::vector<const Replacement*> replacements;
  for (const Replacement& each : of.replacements) replacements.push_back(&each);
  std::sort(replacements.begin(), replacements.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  std::size_t next = 0;
  for (const Replacement* each : replacements) {
    Prepared prepared{edge(each->first), edge(each->end), {}};
    for (std::size_t p = 0; p < each->pieces.size(); ++p, ++next) {
      while (layout.placements()[next].owner < 0) ++next;
      Placement placement = layout.placements()[next];
      placement.owner = static_cast<std::int32_t>(row);
      if (placement.group == 0) {
        Error error;
        error.code = ErrorCode::bad_input;
        error.message = "the template of segment '" + of.segment +
                        "' has pieces of the recorded step itself, which cannot be turned off";
        return error;
      }
      prepared.placements.push_back(std::move(placement));
    }
    prepared_[row].push_back(std::move(prepared));
  }
  find_naming(row);
  find_own_naming(row);
  return Unit{};
}

void StructuredStep::find_naming(std::size_t row) {
  const StepLayout& layout = composed_->layout;
  const Trace& t = *recording_;
  const PassRows& rows = *layout.sources().front().rows;
  Naming& naming = naming_[row];
  const auto inside = [&](EventId event) {
    return event.valid() && layout.placement_of(0, event) < 0;
  };
  const auto op_inside = [&](OpId op) {
    return op.valid() && inside(rows.home(RowTable::ops, op.index()));
  };
  const auto add = [&](RowTable table, std::size_t r, bool names) {
    const EventId home = rows.home(table, r);
    if (names && home.valid() && !inside(home)) {
      naming.rows[index_of(table)].push_back(static_cast<std::uint32_t>(r));
    }
  };
  for (std::size_t e = 0; e < t.events.size(); ++e) {
    if (op_inside(t.events.op[e]) && !inside(EventId(e))) naming.events.emplace_back(e);
  }
  for (std::size_t o = 0; o < t.ops.size(); ++o) {
    add(RowTable::ops, o, op_inside(t.ops.parent[o]) || op_inside(t.ops.forward_op[o]));
  }
  for (std::size_t g = 0; g < t.gpu.size(); ++g) add(RowTable::gpu, g, op_inside(t.gpu.op[g]));
  for (std::size_t i = 0; i < t.tensors.size(); ++i) {
    add(RowTable::tensors, i, op_inside(t.tensors.producer[i]));
  }
  for (std::size_t s = 0; s < t.saved.size(); ++s) {
    add(RowTable::saved, s, op_inside(t.saved.op[s]));
  }
  for (std::size_t u = 0; u < t.unpacks.size(); ++u) {
    add(RowTable::unpacks, u, op_inside(t.unpacks.op[u]));
    if (inside(t.unpacks.released_event[u]) && !inside(t.unpacks.event[u])) {
      naming.unpacks.emplace_back(u);
    }
  }
  for (std::size_t s = 0; s < t.storages.size(); ++s) {
    add(RowTable::storages, s, op_inside(t.storages.alloc_op[s]));
    if (inside(t.storages.natural_free_event[s])) naming.storages.emplace_back(s);
  }
}

// Of the template's own groups: what dies in none of its pieces.
void StructuredStep::find_own_naming(std::size_t row) {
  const StepLayout& layout = composed_->layout;
  Naming& naming = naming_[row];
  for (const Prepared& prepared : prepared_[row]) {
    for (const Placement& placement : prepared.placements) {
      const StepSource& source = layout.source_of(placement);
      const auto outside = [&](EventId event) {
        return event.valid() && layout.placement_of(placement.group, event) < 0;
      };
      const auto each = [&](RowTable table, auto&& f) {
        const std::size_t k = index_of(table);
        for (std::int32_t i = 0; i < placement.count[k]; ++i) {
          f(source.rows->row(table, placement.from[k] + i));
        }
      };
      each(RowTable::storages, [&](std::size_t s) {
        if (!outside(source.trace->storages.natural_free_event[s])) return;
        naming.own_storages.emplace_back(placement.group, StorageId(s));
      });
      each(RowTable::unpacks, [&](std::size_t u) {
        if (!outside(source.trace->unpacks.released_event[u])) return;
        naming.own_unpacks.emplace_back(placement.group, UnpackId(u));
      });
    }
  }
}

// The pieces of the templates that are on, and between them the recording's.
void StructuredStep::lay_out() {
  struct On {
    const Prepared* prepared;
    Range* range;
    std::int32_t owner;
  };
  std::vector<On> all;
  for (std::size_t row = 0; row < templates_.size(); ++row) {
    ranges_[row].assign(prepared_[row].size(), {});
    if (!on_[row]) continue;
    for (std::size_t r = 0; r < prepared_[row].size(); ++r) {
      all.push_back({&prepared_[row][r], &ranges_[row][r], static_cast<std::int32_t>(row)});
    }
  }
  std::sort(all.begin(), all.end(), [](const On& a, const On& b) {
    return a.prepared->first.event < b.prepared->first.event;
  });
  std::vector<Placement> placements;
  std::vector<ReplacedSpan> spans;
  Edge at{EventId(std::size_t{0}), {}};
  const auto add_recorded = [&](const Edge& end) {
    if (!(at.event < end.event)) return;
    Placement placement;
    placement.first = at.event;
    placement.end = end.event;
    placement.from = at.rows;
    for (std::size_t t = 0; t < kRowTables; ++t) placement.count[t] = end.rows[t] - at.rows[t];
    placements.push_back(std::move(placement));
  };
  for (const On& each : all) {
    add_recorded(each.prepared->first);
    each.range->first = placements.size();
    placements.insert(placements.end(), each.prepared->placements.begin(),
                      each.prepared->placements.end());
    each.range->end = placements.size();
    spans.push_back({each.prepared->first.event, each.prepared->end.event, each.owner});
    at = each.prepared->end;
  }
  add_recorded(edge(EventId(recording_->events.size())));
  composed_->layout.lay_out_again(std::move(placements), std::move(spans));
}

Status StructuredStep::rebuild() {
  lay_out();
  if (Status found = storages_.find(); !found) return found;
  if (Status done = write_rows(composed_->layout, storages_, *names_, composed_->trace); !done) {
    return done;
  }
  index_ = std::make_unique<StepIndex>(Step(*recording_, composed_));
  return Unit{};
}

Status StructuredStep::set(std::size_t row, bool on) {
  if (on_[row] == on) return Unit{};
  if (on) {
    for (const Prepared& prepared : prepared_[row]) {
      for (const ReplacedSpan& span : composed_->layout.spans()) {
        if (span.end <= prepared.first.event || prepared.end.event <= span.first) continue;
        Error error;
        error.code = ErrorCode::bad_input;
        error.message = "the templates of segments '" +
                        templates_[static_cast<std::size_t>(span.owner)].segment + "' and '" +
                        templates_[row].segment + "' replace the same events";
        return error;
      }
    }
  }
  Status done = StepSplicer(*this).flip(row);
  if (done) return done;
  on_[row] = !on;
  const Status restored = rebuild();
  STOWAGE_ASSERT(restored.ok());
  return done;
}

std::string StructuredStep::fingerprint() const {
  return stowage::fingerprint(composed_->trace);
}

}  // namespace stowage::simulator
