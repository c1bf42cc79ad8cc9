// A library whose static object throws while it is loaded.
#include <stdexcept>

namespace {

struct Licence {
  Licence() { throw std::runtime_error("no licence\nfound"); }
};
const Licence g_licence;

}  // namespace
