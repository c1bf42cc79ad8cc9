#include "simulator/schedule/stay_places.h"

namespace stowage::simulator {

Place start_of(const Trace& trace, const Offload& offload) {
  return {trace.saved.event[offload.saved.front().index()], Side::after};
}

Place await_of(const Trace& trace, const Reload& reload) {
  return {trace.unpacks.event[reload.unpacks.front().index()], Side::before};
}

Place drop_of(const Trace& trace, const Reload& reload) {
  return {trace.unpacks.event[reload.unpacks.back().index()], Side::after};
}

}  // namespace stowage::simulator
