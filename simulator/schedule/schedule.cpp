#include "simulator/schedule/schedule.h"

namespace stowage::simulator {

const char* name_of(Action value) {
  switch (value) {
    case Action::load:
      return "load";
    case Action::await:
      return "await";
    case Action::store:
      return "store";
    case Action::evict:
      return "evict";
    case Action::update:
      return "update";
  }
  return "?";
}

}  // namespace stowage::simulator
