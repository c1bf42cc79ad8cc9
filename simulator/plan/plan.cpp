#include "simulator/plan/plan.h"

namespace stowage::simulator {

PlanTarget target_of(const Trace& trace) {
  return {.model = trace.run.model,
          .batch = trace.run.batch,
          .seq = trace.run.seq,
          .dtype = trace.run.dtype,
          .autocast = trace.run.autocast,
          .optimizer = trace.run.optimizer,
          .grad_scaler = trace.run.grad_scaler,
          .device = trace.env.device,
          // Threads change the step of a CPU alone.
          .threads = trace.env.device == "cpu" ? trace.run.threads : 0,
          .fingerprint = trace.fingerprint,
          .trace_file = {},
          .trace = {}};
}

const char* name_of(Decision value) {
  switch (value) {
    case Decision::keep:
      return "keep";
    case Decision::offload:
      return "offload";
    case Decision::recompute:
      return "recompute";
  }
  return "?";
}

const char* name_of(CopyMode value) {
  switch (value) {
    case CopyMode::lane:
      return "lane";
    case CopyMode::compute:
      return "compute";
    case CopyMode::blocking:
      return "blocking";
  }
  return "?";
}

const char* name_of(PeakKind value) {
  switch (value) {
    case PeakKind::requested:
      return "requested";
    case PeakKind::active:
      return "active";
    case PeakKind::reserved:
      return "reserved";
  }
  return "?";
}

const char* name_of(PlacementMode value) {
  switch (value) {
    case PlacementMode::caching:
      return "caching";
    case PlacementMode::planned:
      return "planned";
  }
  return "?";
}

const char* name_of(GradientPlace value) {
  switch (value) {
    case GradientPlace::device:
      return "device";
    case GradientPlace::host:
      return "host";
  }
  return "?";
}

const char* name_of(StatePlace value) {
  switch (value) {
    case StatePlace::device:
      return "device";
    case StatePlace::stream:
      return "stream";
    case StatePlace::host:
      return "host";
  }
  return "?";
}

}  // namespace stowage::simulator
