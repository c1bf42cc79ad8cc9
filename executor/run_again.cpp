#include "executor/run_again.h"

#include <c10/util/Exception.h>

namespace stowage::executor {

namespace {

void (*g_thrower)() = nullptr;

}  // namespace

void carry_run_ended(void (*thrower)()) {
  g_thrower = thrower;
}

void RunAgain::end_run() {
  if (g_thrower != nullptr) g_thrower();
  throw RunEnded{};
}

RunAgain::RunAgain(const std::vector<std::int32_t>& unpacks) : slots_(unpacks.size()) {
  for (std::size_t k = 0; k < slots_.size(); ++k) slots_[k].left = unpacks[k];
}

void RunAgain::run_again(SegmentHost& host) {
  std::call_once(once_, [&] { run(host); });
}

std::optional<RunAgain::Form> RunAgain::form_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_nested()) {
    return std::nullopt;
  }
  return Form{tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

void RunAgain::note_given_up(std::int32_t number, const at::Tensor& tensor) {
  const auto k = static_cast<std::size_t>(number);
  if (k < slots_.size()) slots_[k].form = form_of(tensor);
}

void RunAgain::keep(std::int32_t number, const at::Tensor& tensor, SavedId row) {
  const auto k = static_cast<std::size_t>(number);
  if (k >= slots_.size()) return;
  TORCH_CHECK(!slots_[k].form || slots_[k].form == form_of(tensor), "stowage: ", what(),
              " ran again and saved something else: its tensor number ", number, " is ",
              tensor.sizes(), " of ", tensor.scalar_type(), ", in forward it was ",
              at::IntArrayRef(slots_[k].form->shape), " of ", slots_[k].form->dtype,
              " (it must be a function of its inputs and parameters; do not let it run again)");
  slots_[k].row = row;
  if (slots_[k].left > 0) slots_[k].tensor.emplace(tensor);
}

at::Tensor RunAgain::take(std::int32_t number) {
  const auto k = static_cast<std::size_t>(number);
  TORCH_CHECK(k < slots_.size() && slots_[k].tensor,
              "stowage: what ran again did not save what backward asks for");
  Slot& slot = slots_[k];
  at::Tensor tensor = slot.tensor->get();
  if (--slot.left == 0) slot.tensor.reset();
  return tensor;
}

SavedId RunAgain::row(std::int32_t number) const {
  const auto k = static_cast<std::size_t>(number);
  return k < slots_.size() ? slots_[k].row : SavedId();
}

}  // namespace stowage::executor
