// How a running step is compared with the recorded one, pack by pack.
#include <cstddef>
#include <string>

#include "executor/planned_state.h"
#include "traces/site_text.h"

namespace stowage::executor {

using simulator::AnchorKind;

namespace {

std::string list_text(c10::IntArrayRef values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    if (text.size() > 1) text += ",";
    text += std::to_string(value);
  }
  return text + "]";
}

// As a recording has it: an undefined tensor has none.
DType dtype_in(const at::Tensor& tensor) {
  return tensor.defined() ? dtype_of(tensor.scalar_type()) : DType::other;
}

}  // namespace

// Runs at every pack of every step, so without a string or an allocation.
PlannedStep::State::PackDifference PlannedStep::State::compare_pack(const at::Tensor& tensor,
                                                                    const Site& site) {
  using enum PackDifference;
  const Saved& saved = trace_->saved;
  const std::size_t row = counter(AnchorKind::pack);
  if (row >= saved.size()) return count;
  if (saved.call[row] != site.call || saved.ordinal[row] != site.ordinal ||
      trace_->string(trace_->layers.name[saved.layer[row].index()]) != site.layer) {
    return place;
  }
  const Tensors& views = trace_->tensors;
  const std::size_t view = saved.tensor[row].index();
  if (views.dtype[view] != dtype_in(tensor) ||
      (tensor.defined() && views.item_bytes[view] != static_cast<Bytes>(tensor.itemsize()))) {
    return dtype;
  }
  if (!is_plain(tensor)) return saved.storage[row].valid() ? no_memory : none;
  if (tensor.sizes() != c10::IntArrayRef(trace_->list(views.shape[view])) ||
      tensor.strides() != c10::IntArrayRef(trace_->list(views.strides[view]))) {
    return shape;
  }
  if (tensor.storage_offset() != views.offset[view]) return offset;
  const std::int64_t serial = parameters_.serial_of(tensor);
  const std::int32_t index = serial < 0 ? -1 : storage_index_.number_of(serial);
  if (index != saved.storage_index[row]) return storage;
  if (index < 0) return none;
  // A larger one would take more bytes than planned; a smaller one ends ahead of what is copied.
  if (schedule_.tenant_of[row].valid() && static_cast<Bytes>(tensor.storage().nbytes()) !=
                                              trace_->storages.bytes[saved.storage[row].index()]) {
    return size;
  }
  const std::int64_t now = KeptTensor::version_of(tensor);
  if (static_cast<std::size_t>(index) == first_version_.size()) first_version_.push_back(now);
  return now - first_version_[static_cast<std::size_t>(index)] == saved.version[row] ? none
                                                                                     : version;
}

std::string PlannedStep::State::describe(PackDifference difference, const at::Tensor& tensor,
                                         const Site& site) const {
  const Saved& saved = trace_->saved;
  const std::size_t row = counters_[static_cast<std::size_t>(AnchorKind::pack)];
  const std::string where = "saved tensor " + std::to_string(row) + " ";
  const std::string here = site_text(site.layer, site.call, site.ordinal, site.call == 0);
  if (difference == PackDifference::count) return where + "at " + here + " was not recorded";
  const std::string& recorded = trace_->string(saved.site[row]);
  const Tensors& views = trace_->tensors;
  const std::size_t view = saved.tensor[row].index();
  const std::string at_recorded = where + "at " + recorded;
  switch (difference) {
    case PackDifference::place:
      return where + "is at " + here + ", recorded was " + recorded;
    case PackDifference::dtype:
      return at_recorded + " has dtype " + name_of(dtype_in(tensor)) + ", recorded was " +
             name_of(views.dtype[view]);
    case PackDifference::no_memory:
      return at_recorded + " has no memory of its own";
    case PackDifference::shape:
      return at_recorded + " is " + list_text(tensor.sizes()) + " with strides " +
             list_text(tensor.strides()) + ", recorded was " +
             list_text(trace_->list(views.shape[view])) + " with strides " +
             list_text(trace_->list(views.strides[view]));
    case PackDifference::offset:
      return at_recorded + " starts at element " + std::to_string(tensor.storage_offset()) +
             " of its storage, recorded was " + std::to_string(views.offset[view]);
    case PackDifference::storage:
      return at_recorded + " lies in another storage than recorded";
    case PackDifference::size:
      return at_recorded + " has a storage of " + std::to_string(tensor.storage().nbytes()) +
             " bytes, recorded were " +
             std::to_string(trace_->storages.bytes[saved.storage[row].index()]);
    case PackDifference::version:
      return at_recorded + " was written in place more or less often than recorded";
    case PackDifference::none:
    case PackDifference::count:
      break;
  }
  STOWAGE_ASSERT(false && "no difference to describe");
}

}  // namespace stowage::executor
