// What libraries keep for the thread that runs backward.
#pragma once

#include <c10/core/Device.h>

#include "executor/device/step_memory.h"

namespace stowage::executor {

// Makes one product of a linear layer with a bias on the thread that runs backward on a GPU, so
// that the workspace which cuBLASLt's callers keep a thread (1 MiB of the caching allocator, for
// good) is there. In a step that computes nothing again only forward makes such products, so that
// the first segment that runs again in backward would take it: a recording that lacks it would be
// that much off. Recordings of schema 1.8 and later have it, and so has every planned step of one.
// Nothing on another device. `memory`: where it lies, if that is in its setup. Not seen by
// observers; takes and leaves no memory but that, and not that where there is none. Cost: one
// product. Minor schema of recordings that have it.
inline constexpr int kBackwardWorkspaceSince = 8;

void take_backward_workspace(c10::Device device, StepMemory* memory = nullptr);

}  // namespace stowage::executor
