#include "tests/profiler/fabricated_recording.h"

#include <algorithm>
#include <utility>

namespace stowage::testing {

using profiler::RawKind;
using profiler::RawPass;
using profiler::RawRecording;
using profiler::RawView;

FabricatedRecording::FabricatedRecording() {
  open_layers_.push_back({"", 0, 0});  // outside any layer
}

void FabricatedRecording::add(RawPass& pass, RawKind kind, std::int64_t id, Bytes bytes) {
  if (pass.events.empty() && kind != RawKind::step_begin) add(pass, RawKind::step_begin, -1);
  const bool first = &pass == &structure_;
  const auto row = static_cast<std::int64_t>(pass.events.size());
  pass.events.push_back({kind, id, first ? 1000 + 10 * row : 77 * row, 0, bytes});
  if (!first) return;
  if (kind == RawKind::alloc) live_ += bytes;
  if (kind == RawKind::free) live_ -= bytes_.at(id);
  if (kind == RawKind::alloc || kind == RawKind::free) {
    pass.events.back().requested = live_;
    pass.peak_requested = std::max(pass.peak_requested, live_);
  }
}

void FabricatedRecording::both(RawKind kind, std::int64_t id) {
  add(structure_, kind, id);
  add(offload_all_, kind, id);
}

std::int64_t FabricatedRecording::existing(Bytes bytes, StorageClass storage_class) {
  const std::int64_t serial = next_serial_++;
  bytes_[serial] = bytes;
  structure_.live_at_begin.push_back({serial, bytes, storage_class});
  offload_all_.live_at_begin.push_back({serial + kOtherSerials, bytes, storage_class});
  live_ += bytes;
  structure_.requested_at_begin = offload_all_.requested_at_begin = live_;
  structure_.peak_requested = live_;
  return serial;
}

std::int64_t FabricatedRecording::alloc(Bytes bytes) {
  const std::int64_t serial = next_serial_++;
  bytes_[serial] = bytes;
  add(structure_, RawKind::alloc, serial, bytes);
  add(offload_all_, RawKind::alloc, serial + kOtherSerials, bytes);
  return serial;
}

void FabricatedRecording::free(std::int64_t serial) {
  add(structure_, RawKind::free, serial);
}

void FabricatedRecording::let_go(std::int64_t serial) {
  add(offload_all_, RawKind::free, serial + kOtherSerials);
}

void FabricatedRecording::free_in_both(std::int64_t serial) {
  free(serial);
  let_go(serial);
}

std::int32_t FabricatedRecording::path_row(const std::string& path) {
  auto& paths = structure_.layer_paths;
  const auto found = std::find(paths.begin(), paths.end(), path);
  if (found == paths.end()) {
    paths.push_back(path);
    offload_all_.layer_paths.push_back(path);
    return static_cast<std::int32_t>(paths.size()) - 1;
  }
  return static_cast<std::int32_t>(found - paths.begin());
}

void FabricatedRecording::layer(RawKind kind, const std::string& path) {
  both(kind, path_row(path));
  if (kind == RawKind::layer_forward_begin) open_layers_.push_back({path, calls_[path]++, 0});
  if (kind == RawKind::layer_forward_end) open_layers_.pop_back();
}

std::int32_t FabricatedRecording::begin_op(const std::string& name, std::int64_t sequence,
                                           std::int64_t backward_sequence) {
  const auto row = static_cast<std::int32_t>(structure_.ops.size());
  for (RawPass* pass : {&structure_, &offload_all_}) {
    profiler::RawOp op;
    op.name = name;
    op.parent = open_ops_.empty() ? -1 : open_ops_.back();
    op.sequence = sequence;
    op.backward_sequence = backward_sequence;
    pass->ops.push_back(std::move(op));
  }
  open_ops_.push_back(row);
  both(RawKind::op_begin, row);
  return row;
}

void FabricatedRecording::end_op() {
  const std::int32_t row = open_ops_.back();
  open_ops_.pop_back();
  if (open_ops_.empty()) both(RawKind::op_end, row);
}

RawView FabricatedRecording::whole(std::int64_t serial) const {
  return {serial, DType::float32, {bytes_.at(serial) / 4}, {1}, 0, 4};
}

void FabricatedRecording::use(std::int64_t serial, UseMode mode) {
  structure_.ops[static_cast<std::size_t>(open_ops_.front())].uses.push_back({whole(serial), mode});
}

std::int64_t FabricatedRecording::pack(std::int64_t serial, std::int64_t version) {
  Call& call = open_layers_.back();
  profiler::RawSaved saved;
  saved.layer = call.path.empty() ? -1 : path_row(call.path);
  saved.call = call.call;
  saved.ordinal = call.packs++;
  saved.view = whole(serial);
  saved.version = version;
  structure_.saved.push_back(saved);
  saved.view.serial += kOtherSerials;
  offload_all_.saved.push_back(saved);
  const auto row = static_cast<std::int64_t>(structure_.saved.size()) - 1;
  both(RawKind::pack, row);
  return row;
}

std::int64_t FabricatedRecording::unpack(std::int64_t saved) {
  structure_.unpacks.push_back({static_cast<std::int32_t>(saved)});
  offload_all_.unpacks.push_back({static_cast<std::int32_t>(saved)});
  const auto row = static_cast<std::int64_t>(structure_.unpacks.size()) - 1;
  both(RawKind::unpack, row);
  return row;
}

void FabricatedRecording::release(std::int64_t unpack) {
  add(offload_all_, RawKind::released, unpack);
}

void FabricatedRecording::accumulate(std::int64_t serial) {
  add(structure_, RawKind::gradient_accumulated, serial);
  add(offload_all_, RawKind::gradient_accumulated, serial + kOtherSerials);
}

RawRecording FabricatedRecording::finish(Nanoseconds clean_step_ns) {
  both(RawKind::step_end, -1);
  structure_.step_ns = structure_.events.back().time_ns - structure_.events.front().time_ns;
  RawRecording recording;
  recording.run.source = "recorded";
  recording.run.model = "fabricated";
  recording.run.steps = 1;
  recording.env.device = "cpu";
  for (LinkCurve* curve : {&recording.calibration.d2h, &recording.calibration.h2d}) {
    curve->bytes = {1024, 4096};
    curve->bytes_per_second = {1'000'000'000, 1'000'000'000};
    curve->bytes_per_second_p10 = curve->bytes_per_second;
  }
  recording.clean.step_ns = clean_step_ns;
  recording.clean.peak_requested = recording.clean.peak_active = structure_.peak_requested;
  recording.structure = std::move(structure_);
  recording.offload_all = std::move(offload_all_);
  return recording;
}

}  // namespace stowage::testing
