// Random damage to a schedule: instructions left out or taken to other anchors, host slots and ways
// of copying changed.
#pragma once

#include <cstdint>
#include <random>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::testing {

class ScheduleDamage {
 public:
  ScheduleDamage(const simulator::StepIndex& index, simulator::Schedule schedule,
                 std::uint64_t seed);

  // One to three of: an instruction less, another slot for a tenant without a home of its own,
  // another load mode for a saved tensor, an instruction elsewhere.
  simulator::Schedule run() &&;
  // The same, and of any tenant: its slot; of any stay: how it is loaded and stored, whether it
  // says that it is stored.
  simulator::Schedule run_on_all() &&;

 private:
  int below(std::size_t n) { return static_cast<int>(engine_() % n); }
  void once(int kinds);
  void leave_out_or_change(int what, std::size_t at);
  void change_any(int what);
  void move(std::size_t at);

  const simulator::StepIndex& index_;
  simulator::Schedule s_;
  std::mt19937_64 engine_;
};

// Takes the instruction in this row out and puts it in again at the place, as the last one there.
void move_instruction(const simulator::StepIndex& index, simulator::Schedule& schedule,
                      std::size_t row, simulator::Place place);

}  // namespace stowage::testing
