// StructuredStep: a step whose structure changes, one template at a time.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/composed_step.h"
#include "simulator/step/step_index.h"
#include "simulator/step/step_names.h"
#include "simulator/step/step_storages.h"
#include "simulator/step/step_template.h"
#include "simulator/step/template_choice.h"
#include "traces/result.h"

namespace stowage::simulator {

class StepSplicer;

// Holds the step of the templates that are on, and its index. Turning one on or off writes the rows
// of its pieces and those that name them; all other rows are moved in memory, their ids and times
// shifted. The index is made anew. The same tables and index as those of unroll() with the same
// templates, but for the fingerprint, which is empty (fingerprint() says it). Not to be copied.
class StructuredStep {
 public:
  // `recording` must outlive it. Nothing is on. Errors (bad_input): those of check_template(), a
  // template with pieces of the recorded step itself (source kRecording, instance 0), whose
  // pieces name an event twice, or that leaves events out. Cost: O(recording * templates).
  [[nodiscard]] static Result<std::unique_ptr<StructuredStep>> make(
      const Trace& recording, std::vector<StepTemplate> templates);
  StructuredStep(const StructuredStep&) = delete;
  StructuredStep& operator=(const StructuredStep&) = delete;

  // Error (bad_input): another template that is on replaces the same events, or they make no step
  // together; then all is as before. A valid step of valid templates is not validated again.
  // Cost: O(pieces + rows of the template + rows that name its own), plain moves of the step's
  // columns, and a StepIndex.
  [[nodiscard]] Status set(std::size_t row, bool on);

  [[nodiscard]] const std::vector<StepTemplate>& templates() const { return templates_; }
  [[nodiscard]] bool is_on(std::size_t row) const { return on_[row]; }
  // Valid until the next set().
  [[nodiscard]] const Step& step() const { return index_->step(); }
  [[nodiscard]] const StepIndex& index() const { return *index_; }
  [[nodiscard]] std::string fingerprint() const;

 private:
  friend class StepSplicer;

  // The rows of every table at an event of the recording.
  struct Edge {
    EventId event;
    std::array<std::int32_t, kRowTables> rows{};
  };
  struct Prepared {
    Edge first;
    Edge end;
    std::vector<Placement> placements;
  };
  // Rows of the recording outside of a template's spans that name something inside.
  struct Naming {
    std::vector<EventId> events;
    std::array<std::vector<std::uint32_t>, kRowTables> rows;  // ids of ops
    std::vector<StorageId> storages;                          // they die there
    std::vector<UnpackId> unpacks;
    // Of the template's groups: they die in none of its pieces.
    std::vector<std::pair<std::int32_t, StorageId>> own_storages;
    std::vector<std::pair<std::int32_t, UnpackId>> own_unpacks;
  };
  // Placements [first, end) of a replacement that is on.
  struct Range {
    std::size_t first = 0;
    std::size_t end = 0;
  };

  StructuredStep(const Trace& recording, std::vector<StepTemplate> templates);
  [[nodiscard]] Status prepare(std::size_t row);
  [[nodiscard]] Edge edge(EventId event) const;
  void find_naming(std::size_t row);
  void find_own_naming(std::size_t row);
  void lay_out();
  [[nodiscard]] Status rebuild();

  const Trace* recording_;
  std::vector<StepTemplate> templates_;
  std::vector<bool> on_;
  std::shared_ptr<ComposedStep> composed_;
  TemplateGroups groups_;
  std::vector<std::vector<Prepared>> prepared_;  // by template, replacement
  std::vector<Naming> naming_;                   // by template
  std::vector<std::vector<Range>> ranges_;       // by template, replacement; of those that are on
  std::unique_ptr<StepNames> names_;
  StepStorages storages_;
  std::unique_ptr<StepIndex> index_;
};

}  // namespace stowage::simulator
