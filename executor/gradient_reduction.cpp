#include "executor/gradient_reduction.h"

#include <ATen/ThreadLocalPythonObjects.h>

#include <memory>
#include <string>
#include <utility>

namespace stowage::executor {

namespace {

// As the declared scale (executor/loss_scale.cpp), so that a plugin's copy of this file answers
// what the program's does.
using BackwardTable = at::impl::ThreadLocalPythonObjects;

struct DeclaredBackward final : c10::SafePyObject {
  explicit DeclaredBackward(LastBackward* declared)
      : SafePyObject(nullptr, nullptr), backward(declared) {}
  LastBackward* const backward;
};

const std::string& backward_key() {
  static const auto* const name =
      new std::string("stowage.last_backward");  // threads end after main
  return *name;
}

void declare_backward(LastBackward* backward) {
  BackwardTable::set(backward_key(), std::make_shared<DeclaredBackward>(backward));
}

}  // namespace

LastBackward::LastBackward(GradientReduction* reduction) : reduction_(reduction) {
  if (reduction_ != nullptr) declare_backward(this);
}

LastBackward::~LastBackward() {
  if (reduction_ != nullptr) declare_backward(nullptr);
}

LastBackward* LastBackward::declared() {
  if (!BackwardTable::contains(backward_key())) return nullptr;
  return static_cast<const DeclaredBackward*>(BackwardTable::get(backward_key()).get())->backward;
}

void LastBackward::begin() {
  if (reduction_ == nullptr || std::exchange(has_begun_, true)) return;
  reduction_->begin_last_backward();
}

}  // namespace stowage::executor
