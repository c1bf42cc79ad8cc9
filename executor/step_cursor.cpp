#include "executor/step_cursor.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "executor/kept_tensor.h"
#include "executor/saved_view.h"
#include "traces/result.h"
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

// As SiteTracker tells passes apart.
simulator::Pass tracked(simulator::Pass pass) {
  return pass == simulator::Pass::optimizer ? simulator::Pass::forward : pass;
}

// As a recording has it: an undefined tensor has none.
DType dtype_in(const at::Tensor& tensor) {
  return tensor.defined() ? dtype_of(tensor.scalar_type()) : DType::other;
}

}  // namespace

StepCursor::StepCursor(const simulator::Step& step, const simulator::Schedule& schedule,
                       const StepProgram& program)
    : schedule_(schedule), program_(&program), taken_(&program), trace_(step.trace()) {
  for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
    const SavedId saved(s);
    parts_.push_back({tracked(step.pass(saved)), std::max(step.micro_batch(saved), 0)});
  }
  const std::vector<std::int32_t>& numbers = trace_.phases.micro_batch;
  has_micro_batches_ = std::any_of(numbers.begin(), numbers.end(), [](auto n) { return n > 0; });
}

void StepCursor::begin() {
  program_ = taken_;
  counters_.fill(0);
  position_ = 0;
  sites_.reset();
  storage_index_.clear();
  first_version_.clear();
  loaded_.clear();
  first_difference_.clear();
}

std::string StepCursor::skip_update(const StepProgram& skipped) {
  if (program_ != taken_) return "it was skipped already";
  if (next(AnchorKind::parameter_update_begin) > 0) return "it has begun";
  program_ = &skipped;
  return "";
}

StepCursor::Claim StepCursor::count(AnchorKind kind) {
  return {counters_[static_cast<std::size_t>(kind)]++, on_plan(), false};
}

void StepCursor::leave_plan(Claim& claim, std::string difference) {
  first_difference_ = std::move(difference);
  claim.on_plan = false;
  claim.left_plan = true;
}

void StepCursor::check_order(AnchorKind kind, Claim& claim) {
  if (!claim.on_plan) return;
  const std::vector<AnchorKind>& order = program_->order();
  STOWAGE_ASSERT(position_ < order.size());  // every kind by itself has no more than were recorded
  const AnchorKind expected = order[position_++];
  if (expected == kind) return;
  leave_plan(claim, std::string(simulator::name_of(kind)) + " number " +
                        std::to_string(claim.ordinal) + " came ahead of " +
                        simulator::name_of(expected) + " number " + std::to_string(next(expected)) +
                        ", recorded was the other way around");
}

StepCursor::Claim StepCursor::pack(const at::Tensor& tensor, std::int64_t serial,
                                   std::int32_t input) {
  return pack(tensor, serial, input < 0 ? sites_.next_pack() : sites_.input(input));
}

StepCursor::Claim StepCursor::pack(const at::Tensor& tensor, std::int64_t serial,
                                   const Site& site) {
  if (!on_plan()) return count(AnchorKind::pack);
  const PackDifference difference = compare(tensor, serial, site);
  if (difference == PackDifference::none) {
    Claim claim = count(AnchorKind::pack);
    check_order(AnchorKind::pack, claim);
    return claim;
  }
  std::string text = describe(difference, tensor, site);
  Claim claim = count(AnchorKind::pack);
  leave_plan(claim, std::move(text));
  return claim;
}

void StepCursor::loaded(SavedId saved, std::int64_t storage_serial, std::int64_t buffer_serial,
                        Bytes begin) {
  const std::int32_t index = trace_.saved.storage_index[saved.index()];
  if (index < 0 || static_cast<std::size_t>(index) >= first_version_.size()) return;
  loaded_[buffer_serial] = {
      storage_serial,
      first_version_[static_cast<std::size_t>(index)] + trace_.saved.version[saved.index()], begin};
}

StepCursor::Claim StepCursor::unpack(SavedId saved) {
  Claim claim = count(AnchorKind::unpack);
  if (!claim.on_plan) return claim;
  const auto number = [&] { return "unpack number " + std::to_string(claim.ordinal); };
  if (claim.ordinal >= trace_.unpacks.size()) {
    leave_plan(claim, number() +
                          " was not recorded: a saved tensor is used once more than in the "
                          "recorded step");
  } else if (const SavedId expected = trace_.unpacks.saved[claim.ordinal]; expected != saved) {
    leave_plan(claim, number() + " is of " + trace_.string(trace_.saved.site[saved.index()]) +
                          ", recorded was " + trace_.string(trace_.saved.site[expected.index()]));
  }
  check_order(AnchorKind::unpack, claim);
  return claim;
}

StepCursor::Claim StepCursor::layer(AnchorKind kind, std::string_view path) {
  if (kind == AnchorKind::layer_forward_begin) sites_.enter(path);
  Claim claim = count(kind);
  if (kind == AnchorKind::layer_forward_end) sites_.leave();
  if (!claim.on_plan) return claim;
  const auto number = [&] {
    return std::string(simulator::name_of(kind)) + " number " + std::to_string(claim.ordinal);
  };
  if (claim.ordinal >= program_->count(kind)) {
    leave_plan(claim, number() + " of layer " + std::string(path) + " was not recorded");
    return claim;
  }
  const LayerId expected = program_->layer(kind, claim.ordinal);
  const std::string& name = trace_.string(trace_.layers.name[expected.index()]);
  if (name != path) {
    leave_plan(claim, number() + " is of layer " + std::string(path) + ", recorded was " + name);
  }
  check_order(kind, claim);
  return claim;
}

StepCursor::Claim StepCursor::parameter(AnchorKind kind, const std::string& difference) {
  Claim claim = count(kind);
  if (!claim.on_plan) return claim;
  const auto number = [&] {
    return std::string(simulator::name_of(kind)) + " number " + std::to_string(claim.ordinal) + " ";
  };
  if (claim.ordinal >= program_->count(kind)) {
    leave_plan(claim, number() + "was not recorded");
  } else if (!difference.empty()) {
    leave_plan(claim, number() + difference);
  }
  check_order(kind, claim);
  return claim;
}

void StepCursor::end() {
  for (std::size_t kind = 0; kind < simulator::kAnchorKinds && on_plan(); ++kind) {
    const auto anchor = static_cast<AnchorKind>(kind);
    if (anchor == AnchorKind::step_begin || anchor == AnchorKind::step_end) continue;
    if (anchor == AnchorKind::gradient_accumulated && !program_->hears_gradients()) continue;
    if (counters_[kind] == program_->count(anchor)) continue;
    first_difference_ = "the step ended after " + std::to_string(counters_[kind]) + " of " +
                        std::to_string(program_->count(anchor)) + " " + simulator::name_of(anchor) +
                        " events";
  }
}

// Runs at every pack of every step, so without a string or an allocation.
StepCursor::PackDifference StepCursor::compare(const at::Tensor& tensor, std::int64_t serial,
                                               const Site& site) {
  using enum PackDifference;
  const Saved& saved = trace_.saved;
  const std::size_t row = next(AnchorKind::pack);
  if (row >= saved.size()) return count;
  if (saved.call[row] != site.call || saved.ordinal[row] != site.ordinal ||
      trace_.string(trace_.layers.name[saved.layer[row].index()]) != site.layer) {
    return place;
  }
  const bool is_other_part =
      parts_[row].pass != site.pass || parts_[row].micro_batch != site.micro_batch;
  if (has_micro_batches_ && is_other_part) return part;
  const Tensors& views = trace_.tensors;
  const std::size_t view = saved.tensor[row].index();
  if (views.dtype[view] != dtype_in(tensor) ||
      (tensor.defined() && views.item_bytes[view] != static_cast<Bytes>(tensor.itemsize()))) {
    return dtype;
  }
  if (!is_plain(tensor)) return saved.storage[row].valid() ? no_memory : none;
  if (tensor.sizes() != c10::IntArrayRef(trace_.list(views.shape[view])) ||
      tensor.strides() != c10::IntArrayRef(trace_.list(views.strides[view]))) {
    return shape;
  }
  const auto loaded = loaded_.find(serial);
  const Loaded stands_for = loaded != loaded_.end() ? loaded->second : Loaded{serial};
  const auto item = static_cast<Bytes>(tensor.itemsize());
  if (tensor.storage_offset() + stands_for.begin / item != views.offset[view]) {
    return offset;
  }
  serial = stands_for.storage_serial;
  // Recorded without a storage it stays, whatever it is: some op still wrote to it, for one.
  const bool has_storage = serial >= 0 && saved.storage[row].valid();
  const std::int32_t index = has_storage ? storage_index_.number_of(serial) : -1;
  if (index != saved.storage_index[row]) return storage;
  if (index < 0) return none;
  // A larger one would take more bytes than planned; a smaller one ends ahead of what is copied.
  if (schedule_.tenant_of[row].valid() && static_cast<Bytes>(tensor.storage().nbytes()) !=
                                              trace_.storages.bytes[saved.storage[row].index()]) {
    return size;
  }
  const std::int64_t now = KeptTensor::version_of(tensor) + stands_for.version;
  if (static_cast<std::size_t>(index) == first_version_.size()) first_version_.push_back(now);
  return now - first_version_[static_cast<std::size_t>(index)] == saved.version[row] ? none
                                                                                     : version;
}

std::string StepCursor::describe(PackDifference difference, const at::Tensor& tensor,
                                 const Site& site) const {
  const Saved& saved = trace_.saved;
  const std::size_t row = next(AnchorKind::pack);
  const std::string where = "saved tensor " + std::to_string(row) + " ";
  const std::string here = site_text(site.layer, site.call, site.ordinal, site.call == 0);
  if (difference == PackDifference::count) return where + "at " + here + " was not recorded";
  const std::string& recorded = trace_.string(saved.site[row]);
  const Tensors& views = trace_.tensors;
  const std::size_t view = saved.tensor[row].index();
  const std::string at_recorded = where + "at " + recorded;
  switch (difference) {
    case PackDifference::place:
      return where + "is at " + here + ", recorded was " + recorded;
    case PackDifference::part:
      return at_recorded + " is saved in " + simulator::name_of(site.pass) + " of micro-batch " +
             std::to_string(site.micro_batch) + ", recorded was " +
             simulator::name_of(parts_[row].pass) + " of micro-batch " +
             std::to_string(parts_[row].micro_batch);
    case PackDifference::dtype:
      return at_recorded + " has dtype " + name_of(dtype_in(tensor)) + ", recorded was " +
             name_of(views.dtype[view]);
    case PackDifference::no_memory:
      return at_recorded + " has no memory of its own";
    case PackDifference::shape:
      return at_recorded + " is " + list_text(tensor.sizes()) + " with strides " +
             list_text(tensor.strides()) + ", recorded was " +
             list_text(trace_.list(views.shape[view])) + " with strides " +
             list_text(trace_.list(views.strides[view]));
    case PackDifference::offset:
      return at_recorded + " starts at element " + std::to_string(tensor.storage_offset()) +
             " of its storage, recorded was " + std::to_string(views.offset[view]);
    case PackDifference::storage:
      return at_recorded + " lies in another storage than recorded";
    case PackDifference::size:
      return at_recorded + " has a storage of " + std::to_string(tensor.storage().nbytes()) +
             " bytes, recorded were " +
             std::to_string(trace_.storages.bytes[saved.storage[row].index()]);
    case PackDifference::version:
      return at_recorded + " was written in place more or less often than recorded";
    case PackDifference::none:
    case PackDifference::count:
      break;
  }
  STOWAGE_ASSERT(false && "no difference to describe");
}

}  // namespace stowage::executor
