// The waits that the executor's correctness rests on, by number. tests/waits and tests/gpu compile
// the file that holds one again with STOWAGE_OMIT_WAIT=<its number>, and a test must then fail:
// nothing here is waited for without need, and no wait can be lost unseen.
#pragma once

#ifndef STOWAGE_OMIT_WAIT
#define STOWAGE_OMIT_WAIT 0  // none
#endif

namespace stowage::executor {

enum class Wait : int {
  copy_out_for_compute = 1,  // cuda_lanes.cpp
  copy_in_for_compute = 2,
  compute_for_copy_out = 3,
  compute_for_copy_in = 4,
  release = 5,  // planned_state.cpp
  await = 6,
  leave_plan_offloads = 7,
  leave_plan_reloads = 8,
  load_off_plan = 9,
  drop_all = 10,
  blocking_offload = 11,
  blocking_reload = 12,
  host_copy_out = 13,  // host_copy.cpp
  host_copy_in = 14,
  loss = 15,          // training_step.cpp
  dump = 16,          // tensor_dump.cpp
  dump_digests = 17,  // piece_digests.cpp
  adopt = 18,         // streamed_parameters.cpp
  await_load = 19,
  evict = 20,
  store_dirty = 21,
  materialise = 22
};

// At compile time, so nothing of it is left in the program.
consteval bool needed(Wait wait) {
  return static_cast<int>(wait) != STOWAGE_OMIT_WAIT;
}

}  // namespace stowage::executor
