#include "traces/site_text.h"

namespace stowage {

std::string site_text(std::string_view layer, std::int32_t call, std::int32_t ordinal,
                      bool called_once) {
  std::string text(layer);
  if (!called_once) text += "@" + std::to_string(call);
  return ordinal < 0 ? text + "#in" + std::to_string(-1 - ordinal)
                     : text + "#" + std::to_string(ordinal);
}

}  // namespace stowage
