#include "simulator/schedule/schedule.h"

#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {

StorageId Tenant::at_begin() const {
  return kind->is_made_anew ? previous : storage;
}

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
