#include "executor/device/host_work.h"

#include <utility>

namespace stowage::executor {

namespace {
thread_local bool t_host_work = false;
}  // namespace

bool is_host_work() {
  return t_host_work;
}

HostWorkGuard::HostWorkGuard() : previous_(std::exchange(t_host_work, true)) {}
HostWorkGuard::~HostWorkGuard() {
  t_host_work = previous_;
}

}  // namespace stowage::executor
