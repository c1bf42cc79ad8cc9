// What PlannedStep::State does for parameters, optimizer state and gradients between steps.
#include <c10/util/Exception.h>

#include <chrono>
#include <unordered_set>
#include <utility>

#include "executor/backward_thread.h"
#include "executor/planned_state.h"
#include "simulator/hazards/shared_memory_check.h"
#include "simulator/placement/hand_out_text.h"
#include "simulator/placement/memory_layout.h"

namespace stowage::executor {

void PlannedStep::State::adopt() {
  const TurnLine::Place place(line_, next_turn());
  device_.synchronize();  // a stream that is not compute may still use them
  try {
    optimizer_state_.adopt();  // what is made of parameters is made while they are there
    parameters_.adopt();
    gradients_.adopt();
  } catch (...) {
    device_.synchronize();  // no copy into the arena outlives it
    throw;
  }
}

void PlannedStep::State::take_workspaces(const std::vector<LibraryWorkspace>& workspaces) {
  struct Setup {
    explicit Setup(StepMemory& of) : memory(of) { memory.begin_setup(); }
    ~Setup() { memory.end_setup(); }
    Setup(const Setup&) = delete;
    Setup& operator=(const Setup&) = delete;
    StepMemory& memory;
  };
  const Setup setup(*memory_);
  {
    const StepMemoryGuard guard(memory_.get());
    device_.take_workspaces(workspaces);
  }
  if (trace_->schema.minor >= kBackwardWorkspaceSince) {
    take_backward_workspace(device_.torch_device(), memory_.get());
  }
}

Status PlannedStep::State::take_memory(const simulator::StepIndex& index) {
  const TurnLine::Place place(line_, next_turn());
  const auto begin = std::chrono::steady_clock::now();
  simulator::MemoryLayout layout =
      simulator::memory_layout(index, schedule_, device_.page_choice(), options_.ran_before);
  const auto hazards =
      simulator::shared_memory_hazards(index, schedule_, layout.live, layout.placement);
  if (!hazards.empty()) {
    return Error{ErrorCode::bad_input, "planned memory is not safe: " + hazards.front().text, "",
                 "", "run the plan with --placement caching"};
  }
  Result<std::unique_ptr<StepMemory>> memory = device_.step_memory(std::move(layout));
  if (!memory) return memory.error();
  memory_ = std::move(memory).value();
  const std::vector<LibraryWorkspace> workspaces = device_.release_workspaces();
  std::vector<at::Tensor> lasting;
  std::vector<at::Tensor> gradients;
  std::unordered_set<const c10::TensorImpl*> are_gradients;
  for (const NamedTensor& each : parameters_.parameters()) {
    lasting.push_back(each.tensor);
    are_gradients.insert(each.tensor.grad().unsafeGetTensorImpl());
  }
  for (const at::Tensor& each : options_.older) {
    (are_gradients.contains(each.unsafeGetTensorImpl()) ? gradients : lasting).push_back(each);
  }
  options_.older.clear();  // their memory is not held
  if (Status status = older_.move_in(*memory_, lasting); !status) return status;
  // Ahead of gradients: one that the next step drops would have a workspace's place.
  take_workspaces(workspaces);
  if (Status status = older_.move_in(*memory_, gradients); !status) return status;
  Status mapped = memory_->map_rest();
  memory_setup_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  return mapped;
}

void PlannedStep::State::leave() {
  if (memory_ != nullptr) {
    const TurnLine::Place place(line_, next_turn());
    memory_->close();
  }
  materialise_all();
  if (memory_ == nullptr) return;
  leave_memory();
  memory_->close();
}

void PlannedStep::State::leave_memory() {
  if (memory_ == nullptr) return;
  const TurnLine::Place place(line_, next_turn());
  const std::vector<LibraryWorkspace> workspaces = device_.release_workspaces();
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& each : parameters_.parameters()) {
    tensors.push_back(each.tensor);
    if (each.tensor.grad().defined()) tensors.push_back(each.tensor.grad());
  }
  try {
    older_.move_out(*memory_, tensors);
  } catch (const c10::OutOfMemoryError&) {
    // They stay where they are, and their pages with them.
  }
  device_.take_workspaces(workspaces);
}

std::optional<StepMemoryReport> PlannedStep::State::memory_report() const {
  if (memory_ == nullptr) return std::nullopt;
  const simulator::HandOutReport report = memory_->report();
  StepMemoryReport of_memory;
  of_memory.bytes = memory_->bytes();
  of_memory.mapped = memory_->mapped_bytes();
  of_memory.older = older_.bytes();
  of_memory.setup = memory_setup_;
  of_memory.served = report.served;
  of_memory.conflicts = report.conflicts;
  of_memory.unforeseen = report.unforeseen;
  of_memory.lent = memory_->lent();
  of_memory.surprises = simulator::surprises_text(*trace_, report);
  return of_memory;
}

void PlannedStep::State::materialise() {
  const TurnLine::Place place(line_, next_turn());
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!active_,
                "stowage: parameters are brought back between steps only; end or abort the step");
  }
  parameters_.materialise();
}

void PlannedStep::State::materialise_all() {
  materialise();
  const TurnLine::Place place(line_, next_turn());
  optimizer_state_.materialise();
  gradients_.materialise();
}

std::vector<NamedTensor> PlannedStep::State::values() {
  const TurnLine::Place place(line_, next_turn());
  device_.synchronize();
  return parameters_.values();
}

std::vector<NamedTensor> PlannedStep::State::values(const std::vector<NamedTensor>& tensors) {
  const TurnLine::Place place(line_, next_turn());
  device_.synchronize();
  return gradients_.values_of(optimizer_state_.values_of(tensors));
}

}  // namespace stowage::executor
