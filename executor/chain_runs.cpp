#include "executor/chain_runs.h"

#include <string_view>

namespace stowage::executor {

ChainRuns::ChainRuns(std::vector<ChainSpec> specs, c10::Device device)
    : specs_(std::move(specs)), device_(device) {
  for (std::size_t chain = 0; chain < specs_.size(); ++chain) {
    const ChainSpec& spec = specs_[chain];
    op_count_ += spec.ops.size();
    for (std::size_t op = 0; op < spec.ops.size(); ++op) {
      names_[spec.ops[op].name].ops[spec.ops[op].ordinal].emplace_back(chain, op);
    }
    for (std::size_t k = 0; k < spec.given_up.size(); ++k) {
      given_up_[spec.given_up[k].saved] = {chain, k};
    }
  }
}

void ChainRuns::begin() {
  end();
  if (empty()) return;
  for (const ChainSpec& spec : specs_) calls_.push_back(std::make_shared<ChainCall>(spec, device_));
  for (auto& [name, of] : names_) of.next = 0;
  forward_thread_ = std::this_thread::get_id();
  seen_ = 0;
  backward_depth_ = 0;
  watch_.emplace();
}

void ChainRuns::backward_end() {
  if (backward_depth_ == 0 || --backward_depth_ > 0) return;
  if (!calls_.empty() && seen_ < op_count_) watch_.emplace();
}

void ChainRuns::end() {
  watch_.reset();
  open_.clear();
  calls_.clear();
}

void ChainRuns::op_begin(const at::RecordFunction& function, SegmentHost& host) {
  if (!hears()) return;
  open_.clear();
  const auto name = names_.find(std::string_view(function.name()));
  if (name == names_.end()) return;
  const auto of = name->second.ops.find(name->second.next++);
  if (of == name->second.ops.end()) return;
  open_ = of->second;
  seen_ += open_.size();
  for (const auto& [chain, op] : open_) calls_[chain]->op_begin(op, function, host);
}

void ChainRuns::op_end(const at::RecordFunction& function, SegmentHost& host) {
  if (!hears()) return;
  for (const auto& [chain, op] : open_) calls_[chain]->op_end(op, function, host);
  open_.clear();
}

SegmentRuns::Pack ChainRuns::give_up(SavedId row, const at::Tensor& tensor, std::int64_t serial) {
  const auto found = given_up_.find(row);
  if (found == given_up_.end() || calls_.empty()) return {};
  const auto [chain, number] = found->second;
  calls_[chain]->give_up(static_cast<std::int32_t>(number), tensor, serial);
  return {calls_[chain], static_cast<std::int32_t>(number), false};
}

}  // namespace stowage::executor
