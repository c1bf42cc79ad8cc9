// The consumer's own: named as one of Stowage's.
#pragma once

namespace consumer {

inline const char* cpu_device() {
  return "the consumer's cpu";
}

}  // namespace consumer
