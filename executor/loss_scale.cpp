#include "executor/loss_scale.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <string>
#include <utility>

namespace stowage::executor {

namespace {

// As the current driver (executor/step_driver.cpp), so that a plugin's copy of this file answers
// what the program's does.
using ScaleTable = at::impl::ThreadLocalPythonObjects;

struct DeclaredScale final : c10::SafePyObject {
  explicit DeclaredScale(LossScale* declared) : SafePyObject(nullptr, nullptr), scale(declared) {}
  LossScale* const scale;
};

const std::string& scale_key() {
  static const auto* const name = new std::string("stowage.loss_scale");  // threads end after main
  return *name;
}

void declare(LossScale* scale) {
  ScaleTable::set(scale_key(), std::make_shared<DeclaredScale>(scale));
}

}  // namespace

LossScale::LossScale(at::Tensor scale) : scale_(std::move(scale)) {
  if (scale_.defined()) declare(this);
}

LossScale::~LossScale() {
  if (scale_.defined()) declare(nullptr);
}

LossScale* LossScale::declared() {
  if (!ScaleTable::contains(scale_key())) return nullptr;
  return static_cast<const DeclaredScale*>(ScaleTable::get(scale_key()).get())->scale;
}

at::Tensor LossScale::of(const at::Tensor& tensor, const at::Tensor& gradient) const {
  const at::NoGradGuard no_graph;
  const at::Tensor scale = scale_.to(tensor.scalar_type());
  return gradient.defined() ? gradient * scale : scale;
}

}  // namespace stowage::executor
