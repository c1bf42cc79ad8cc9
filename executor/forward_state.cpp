#include "executor/forward_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <mutex>

namespace stowage::executor {

RandomState::RandomState(c10::Device device) : device_(device) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(cpu.mutex());
    auto* const impl = at::check_generator<at::CPUGeneratorImpl>(cpu);
    engine_ = impl->engine();
    next_float_ = impl->next_float_normal_sample();
    next_double_ = impl->next_double_normal_sample();
  }
  if (device_.is_cpu()) return;
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(generator.mutex());
  seed_ = generator.current_seed();
  offset_ = generator.get_offset();
}

void RandomState::put_back() const {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(cpu.mutex());
    auto* const impl = at::check_generator<at::CPUGeneratorImpl>(cpu);
    impl->set_engine(engine_);
    impl->set_next_float_normal_sample(next_float_);
    impl->set_next_double_normal_sample(next_double_);
  }
  if (device_.is_cpu()) return;
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed_);
  generator.set_offset(offset_);
}

ForwardState::Restored::Autocast ForwardState::Restored::autocast_of(c10::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}

void ForwardState::Restored::set(c10::DeviceType device, const Autocast& autocast) {
  at::autocast::set_autocast_enabled(device, autocast.enabled);
  at::autocast::set_autocast_dtype(device, autocast.dtype);
}

ForwardState::ForwardState(c10::Device device)
    : device_(device),
      random_(device),
      cpu_(Restored::autocast_of(c10::kCPU)),
      device_autocast_(Restored::autocast_of(device.type())),
      cache_(at::autocast::is_autocast_cache_enabled()),
      is_in_autocast_(at::autocast::increment_nesting() > 1) {
  at::autocast::decrement_nesting();
}

ForwardState::Restored::Restored(const ForwardState& state)
    : random_(state.device_),
      type_(state.device_.type()),
      cpu_(autocast_of(c10::kCPU)),
      device_autocast_(autocast_of(type_)),
      cache_(at::autocast::is_autocast_cache_enabled()) {
  set(state);
}

void ForwardState::Restored::go_on(const ForwardState& state) {
  if (!state.is_in_autocast_) leave_autocast();
  thread_.reset();
  set(state);
}

void ForwardState::Restored::set(const ForwardState& state) {
  TORCH_CHECK(state.settings_ == NumericSettings(),
              "stowage: precision, determinism or the kernels of attention were set otherwise "
              "behind forward, so what runs again would not give what it gave there");
  thread_.emplace(state.thread_);
  state.random_.put_back();
  set(c10::kCPU, state.cpu_);
  set(type_, state.device_autocast_);
  at::autocast::set_autocast_cache_enabled(state.cache_);
  if (state.is_in_autocast_ && !is_in_autocast_) {
    is_in_autocast_ = true;
    is_outermost_ = at::autocast::increment_nesting() == 1;
  }
  c10::GradMode::set_enabled(true);
}

void ForwardState::Restored::leave_autocast() {
  if (!is_in_autocast_) return;
  drop_casts();
  at::autocast::decrement_nesting();
  is_in_autocast_ = is_outermost_ = false;
}

void ForwardState::Restored::drop_casts() const {
  if (is_outermost_) at::autocast::clear_cache();
}

ForwardState::Restored::~Restored() {
  // What was cast for this run is nobody's any more.
  leave_autocast();
  at::autocast::set_autocast_cache_enabled(cache_);
  set(type_, device_autocast_);
  set(c10::kCPU, cpu_);
  random_.put_back();
}

}  // namespace stowage::executor
