#include "report/answers/recompute_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "report/answers/name_family.h"
#include "report/answers/text_table.h"
#include "report/recomputed_segments.h"
#include "traces/size_text.h"

namespace stowage::report {

std::string recompute_text(const simulator::Step& step, ByteUnits units) {
  struct Family {
    bool by_ops = false;
    NameFamily names;
    Bytes freed = 0;
    Nanoseconds time = 0;
  };
  std::map<std::string, Family> families;
  Family all;
  for (const RecomputedSegment& segment : recomputed_segments(step)) {
    Family& family = families[NameFamily::key_of(segment.name)];
    family.names.add(segment.name);
    family.by_ops = segment.by_ops;
    for (Family* sum : {&family, &all}) {
      sum->freed += segment.freed;
      sum->time += segment.time;
    }
  }
  if (families.empty()) return {};
  TextTable table;
  table.column("runs again");
  table.column("by");
  table.column("frees", Align::right);
  table.column("takes", Align::right);
  for (const auto& [name, family] : families) {
    table.row({family.names.text(), family.by_ops ? "ops" : "layers",
               format_bytes(family.freed, units), format_time(family.time)});
  }
  table.row({"together", "", format_bytes(all.freed, units), format_time(all.time)});
  return "\n" + table.text(2);
}

std::string recompute_by_layer_text(const simulator::Step& step,
                                    const simulator::ReplayResult& result, const Paint& paint) {
  const auto layers = recomputed_layers(recomputed_segments(step, result.peak_event));
  if (layers.empty()) return {};
  TextTable table;
  table.column("layer");
  table.column("by");
  table.column("gone at this peak", Align::right);
  table.column("frees", Align::right);
  table.column("adds", Align::right);
  RecomputedLayer all;
  for (const RecomputedLayer& layer : layers) {
    table.row({layer.layer.empty() ? "step" : layer.layer, layer.by_ops ? "ops" : "layers",
               format_bytes(layer.freed_at_peak), format_bytes(layer.freed),
               format_time(layer.time)});
    all.freed_at_peak += layer.freed_at_peak;
    all.freed += layer.freed;
    all.time += layer.time;
  }
  table.row({"together", "", format_bytes(all.freed_at_peak), format_bytes(all.freed),
             format_time(all.time)});
  std::string text = "\n" + paint.bold("What recompute buys") + "\n" + table.text(2);
  if (all.freed_at_peak == 0) {
    text +=
        "  The peak under this plan is where all of it has run again: what it frees made the "
        "recorded peak lower, not this one.\n";
  }
  return text;
}

}  // namespace stowage::report
