// The consumer's own: named as one of Stowage's.
#pragma once

namespace consumer {

struct StepIndex {
  int first = 1;
};

}  // namespace consumer
