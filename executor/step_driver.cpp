#include "executor/step_driver.h"

#include <ATen/ThreadLocalPythonObjects.h>

#include <atomic>
#include <string>

namespace stowage::executor {

class DriverLink {
 public:
  DriverLink(StepDriver& driver, std::shared_ptr<DriverLink> outer)
      : outer_(std::move(outer)), driver_(&driver) {}

  [[nodiscard]] StepDriver* driver() const { return driver_.load(std::memory_order_acquire); }
  void cut() { driver_.store(nullptr, std::memory_order_release); }
  [[nodiscard]] const std::shared_ptr<DriverLink>& outer() const { return outer_; }

 private:
  const std::shared_ptr<DriverLink> outer_;  // that it was put in front of
  std::atomic<StepDriver*> driver_;
};

namespace {

// A thread_local of our own would not reach autograd's threads. LibTorch hands them a table of
// objects by name, made for Python's; one without a Python object needs no Python.
using Table = at::impl::ThreadLocalPythonObjects;

struct Current final : c10::SafePyObject {
  explicit Current(std::shared_ptr<DriverLink> installed)
      : SafePyObject(nullptr, nullptr), link(std::move(installed)) {}
  const std::shared_ptr<DriverLink> link;
};

const std::string& key() {
  static const auto* const name = new std::string("stowage.driver");  // threads end after main
  return *name;
}

// The link as it was set, cut or not.
const std::shared_ptr<DriverLink>& set_link() {
  static const auto* const none = new std::shared_ptr<DriverLink>;
  if (!Table::contains(key())) return *none;
  return static_cast<const Current*>(Table::get(key()).get())->link;
}

const std::shared_ptr<DriverLink>& current_link() {
  const std::shared_ptr<DriverLink>* link = &set_link();
  while (*link != nullptr && (*link)->driver() == nullptr) link = &(*link)->outer();
  return *link;
}

void make_current(std::shared_ptr<DriverLink> link) {
  Table::set(key(), std::make_shared<Current>(std::move(link)));
}

}  // namespace

InstalledDriver::InstalledDriver(StepDriver& driver)
    : link_(std::make_shared<DriverLink>(driver, current_link())) {
  make_current(link_);
}

void InstalledDriver::resume() const {
  if (link_ != nullptr) make_current(link_);
}

void InstalledDriver::remove() noexcept {
  if (link_ == nullptr) return;
  link_->cut();
  // Other threads that have it pass over it, and let go of it at their next installation.
  if (set_link() == link_) make_current(current_link());
  link_ = nullptr;
}

std::vector<at::Tensor> StepDriver::run_layer(std::string_view path, const LayerFn& fn,
                                              std::vector<at::Tensor> inputs) {
  const std::shared_ptr<DriverLink> link = current_link();
  layer_event(LayerEvent::forward_begin, path);
  std::vector<at::Tensor> outputs = fn(inputs);
  inputs.clear();
  // The layer may have ended the step.
  if (driver_of(link.get()) == this) layer_event(LayerEvent::forward_end, path);
  return outputs;
}

StepDriver* driver() {
  return driver_of(current_link().get());
}

std::int32_t parts_of(std::string_view segment) {
  for (const DriverLink* link = current_link().get(); link != nullptr; link = link->outer().get()) {
    StepDriver* const each = link->driver();
    if (each == nullptr) continue;
    if (const std::optional<std::int32_t> parts = each->parts(segment)) return *parts;
  }
  return 1;
}

void tell_layer_tensors(LayerSide side, std::string_view path, std::vector<at::Tensor>& tensors) {
  for (const DriverLink* link = current_link().get(); link != nullptr; link = link->outer().get()) {
    if (StepDriver* const each = link->driver()) each->layer_tensors(side, path, tensors);
  }
}

std::shared_ptr<const DriverLink> driver_link() {
  return current_link();
}

StepDriver* driver_of(const DriverLink* link) {
  return link == nullptr ? nullptr : link->driver();
}

}  // namespace stowage::executor
