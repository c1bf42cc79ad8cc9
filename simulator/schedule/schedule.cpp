#include "simulator/schedule/schedule.h"

namespace stowage::simulator {

const char* name_of(Action value) {
  switch (value) {
    case Action::start_offload:
      return "start_offload";
    case Action::release:
      return "release";
    case Action::start_reload:
      return "start_reload";
    case Action::await:
      return "await";
    case Action::drop:
      return "drop";
    case Action::start_load:
      return "start_load";
    case Action::await_load:
      return "await_load";
    case Action::start_store:
      return "start_store";
    case Action::evict:
      return "evict";
  }
  return "?";
}

}  // namespace stowage::simulator
