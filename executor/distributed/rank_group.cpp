#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include "executor/distributed/rank_group.h"

#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <exception>
#include <utility>
#include <vector>

#include "executor/device/first_line.h"

namespace stowage::executor {

Result<std::unique_ptr<RankGroup>> RankGroup::join(RankStore& store, const std::string& name) {
  // Gloo's own connecting hears of no rank's failure.
  const auto here = store.gather("joins " + name, "");
  if (!here) return here.error();
  try {
    const auto rank = static_cast<int>(store.rank());
    const auto ranks = static_cast<int>(store.ranks());
    const c10::intrusive_ptr<c10d::Store> part = store.part("group " + name);
    auto options = c10d::ProcessGroupGloo::Options::create_default(kRankTimeLimit);
    options->threads = 1;  // so that collectives end, and are let go of, in order: settle()
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(part, rank, ranks, options);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(part, rank, ranks);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    group->setGroupName(name);
    return std::unique_ptr<RankGroup>(new RankGroup(std::move(group)));
  } catch (const std::exception& error) {
    return Error{ErrorCode::environment,
                 "the ranks' Gloo group is not made: " + first_line(error.what()), "", "",
                 "GLOO_SOCKET_IFNAME names the network interface, where the host's name does not"};
  }
}

RankGroup::RankGroup(c10::intrusive_ptr<c10d::ProcessGroup> group)
    : group_(std::move(group)), nothing_(at::zeros({1})) {}

void RankGroup::settle() const {
  std::vector<at::Tensor> tensors = {nothing_};
  group_->allreduce(tensors)->wait();
}

std::int64_t RankGroup::collectives() const {
  return static_cast<std::int64_t>(group_->getDefaultBackend()->getSequenceNumberForGroup());
}

bool tells_of_lost_rank(const std::string& message) {
  if (message.find("gloo") == std::string::npos) return false;
  for (const char* words :
       {"Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed",
        "Timed out waiting", "Application timeout caused pair closure"}) {
    if (message.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace stowage::executor
