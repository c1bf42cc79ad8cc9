// The waits that the executor's correctness rests on, by number. tests/waits and tests/gpu compile
// the files that hold them again with STOWAGE_OMITS_WAITS, leave one out at a time, and a test must
// then fail: nothing here is waited for without need, and no wait can be lost unseen.
#pragma once

#ifdef STOWAGE_OMITS_WAITS
#include <cstdlib>
#endif

namespace stowage::executor {

enum class Wait : int {
  copy_out_for_compute = 1,  // cuda_lanes.cpp
  copy_in_for_compute = 2,
  compute_for_copy_out = 3,
  compute_for_copy_in = 4,
  release = 5,  // saved_tenants.cpp
  await = 6,
  leave_plan_offloads = 7,
  leave_plan_reloads = 8,
  load_off_plan = 9,
  drop_all = 10,          // planned_state.cpp
  blocking_offload = 11,  // saved_tenants.cpp
  blocking_reload = 12,
  host_copy_out = 13,  // host_copy.cpp
  host_copy_in = 14,
  loss = 15,          // training_step.cpp
  dump = 16,          // tensor_dump.cpp
  dump_digests = 17,  // piece_digests.cpp
  adopt = 18,         // streamed_storages.cpp
  await_load = 19,
  evict = 20,
  store_dirty = 21,
  materialise = 22
};

#ifdef STOWAGE_OMITS_WAITS
// In those tests alone: the environment's STOWAGE_OMIT_WAIT is the number of the one to leave out.
inline bool needed(Wait wait) {
  static const int omitted = [] {
    const char* const number = std::getenv("STOWAGE_OMIT_WAIT");
    return number == nullptr ? 0 : std::atoi(number);
  }();
  return static_cast<int>(wait) != omitted;
}
#else
// At compile time, so nothing of it is left in the program.
consteval bool needed(Wait) {
  return true;
}
#endif

}  // namespace stowage::executor
