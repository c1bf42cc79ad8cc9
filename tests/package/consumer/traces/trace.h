// The consumer's own: named as one of Stowage's.
#pragma once

namespace consumer {

struct Trace {
  int lines = 3;
};

}  // namespace consumer
