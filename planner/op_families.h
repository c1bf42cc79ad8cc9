// What chains of single ops can make again (simulator/step/op_chains.h), identical layers together.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

struct OpFamily {
  // What is saved at these sites, in one layer: a tensor, alone or with those that it is made of,
  // where these are no families of their own.
  struct Member {
    std::vector<std::string> sites;
    EventId first;  // [first, end): the ops that run again
    EventId end;
    Nanoseconds work = 0;
    Bytes bytes = 0;  // that are freed, less those that are held for the ops
  };
  std::vector<Member> members;  // in order of forward
  Bytes bytes = 0;
  Nanoseconds work = 0;
};

// Of a recording; those that free the most bytes for their work first, at most `most`. A
// part is worth it when what its ops need that is not saved anyway takes fewer bytes than it frees
// (what is held may still leave, so this decides nothing of the tensor itself); a family, when its
// work takes less time than copying its bytes out and back, if they may be `copied`. Cost: a
// ChainFinder::find() for each tensor that can be made again.
[[nodiscard]] std::vector<OpFamily> op_families(const simulator::StepIndex& recorded,
                                                std::size_t most, bool copied = true);

}  // namespace stowage::planner
