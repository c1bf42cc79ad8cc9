#include "simulator/network/gradient_buckets.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace stowage::simulator {
namespace {

// Names that PyTorch gives its collectives, and NCCL its kernels.
bool is_collective(std::string_view op) {
  return op.starts_with("c10d::") || op.starts_with("_c10d_functional::");
}
bool is_nccl(std::string_view kernel) {
  return kernel.starts_with("ncclDevKernel") || kernel.starts_with("ncclKernel");
}

std::string collective_of(const Trace& step) {
  for (const StringId name : step.ops.name) {
    if (is_collective(step.string(name))) return step.string(name);
  }
  for (const StringId name : step.gpu.name) {
    if (is_nccl(step.string(name))) return step.string(name);
  }
  return {};
}

Error refused(std::string message, std::string hint) {
  return Error{ErrorCode::bad_input, std::move(message), "", "", std::move(hint)};
}

Error without_gradients(const Trace& step) {
  const Storages& storages = step.storages;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.storage_class[s] != StorageClass::gradient) continue;
    return refused(
        "ranks cannot be simulated: the recording does not say when gradients accumulate",
        "record the step again");
  }
  return refused("ranks cannot be simulated: the step has no gradients to reduce",
                 "record a training step");
}

// Events at which each parameter's gradient has accumulated for the last time, in order.
std::vector<EventId> last_accumulations(const Events& events) {
  std::map<std::int32_t, EventId> last;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::gradient_accumulated) last[events.ref[e]] = EventId(e);
  }
  std::vector<EventId> order;
  for (const auto& [parameter, event] : last) order.push_back(event);
  std::sort(order.begin(), order.end());
  return order;
}

EventId end_of_backward(const Trace& step, EventId last_gradient) {
  for (std::size_t e = last_gradient.index(); e < step.events.size(); ++e) {
    if (step.events.kind[e] == EventKind::backward_end) return EventId(e);
  }
  const Phases& phases = step.phases;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (last_gradient <= phases.last_event[p]) return phases.last_event[p];
  }
  return EventId(step.events.size() - 1);
}

// By storage; `other` where no tensor is of it.
std::vector<DType> dtypes(const Trace& step) {
  std::vector<DType> of(step.storages.size(), DType::other);
  for (std::size_t t = step.tensors.size(); t-- > 0;) {
    const StorageId storage = step.tensors.storage[t];
    if (storage.valid()) of[storage.index()] = step.tensors.dtype[t];
  }
  return of;
}

}  // namespace

Result<GradientBuckets> gradient_buckets(const Trace& step, const BucketLimits& limits) {
  if (const std::string collective = collective_of(step); !collective.empty()) {
    return refused(
        "ranks cannot be simulated: the step was recorded over several ranks (" + collective + ")",
        "record it on one device, without DistributedDataParallel");
  }
  const std::vector<EventId> ready = last_accumulations(step.events);
  if (ready.empty()) return without_gradients(step);
  GradientBuckets made;
  made.waited_for = end_of_backward(step, ready.back());
  for (std::size_t e = 0; e < made.waited_for.index(); ++e) {
    if (step.events.kind[e] != EventKind::parameter_update_begin) continue;
    return refused(
        "ranks cannot be simulated: the step updates a parameter ahead of the end of its "
        "last backward, where the gradients of all ranks are waited for",
        "record a step whose optimizer runs behind all of its backward");
  }
  const std::vector<DType> dtype_of = dtypes(step);
  std::map<DType, GradientBucket> open;
  std::map<DType, bool> has_closed;
  for (const EventId event : ready) {
    const auto parameter = static_cast<std::size_t>(step.events.ref[event.index()]);
    const DType dtype = dtype_of[parameter];
    GradientBucket& bucket = open[dtype];
    bucket.dtype = dtype;
    bucket.bytes += step.storages.bytes[parameter];
    bucket.ready = event;
    ++bucket.gradients;
    if (bucket.bytes < (has_closed[dtype] ? limits.others : limits.first)) continue;
    made.buckets.push_back(bucket);
    open.erase(dtype);
    has_closed[dtype] = true;
  }
  const std::size_t closed = made.buckets.size();
  for (const auto& [dtype, bucket] : open) made.buckets.push_back(bucket);
  std::sort(made.buckets.begin() + static_cast<std::ptrdiff_t>(closed), made.buckets.end(),
            [](const GradientBucket& a, const GradientBucket& b) { return a.ready < b.ready; });
  return made;
}

}  // namespace stowage::simulator
