#include "planner/mixed_updates.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/in_parallel.h"
#include "planner/pins.h"
#include "planner/streaming_layers.h"

namespace stowage::planner {
namespace {

constexpr std::int64_t kLookQuota = 48;   // evaluations that say what a mix is worth
constexpr std::size_t kMostSearched = 4;  // of those that were looked at
constexpr std::int64_t kFar = 8;          // of kParts, by which a first look is apart from the next

bool is_among(const std::vector<StorageId>& all, StorageId one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::unique_ptr<MixedUpdates> MixedUpdates::make(const simulator::StepIndex& recorded,
                                                 const std::vector<StorageId>& updated,
                                                 const PlanRequest& request, BestPlan& best) {
  const Trace& trace = recorded.trace();
  const Storages& storages = trace.storages;
  const Pins* const pinned = request.allowed.pinned.get();
  std::vector<StorageId> always;
  if (pinned != nullptr) always = pinned->structure().host_updates;
  const std::vector<LayerId> layer_of = streaming_layers(trace);
  std::map<LayerId, Layer> by_layer;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId owner = storages.parameter[s].valid() ? storages.parameter[s] : StorageId(s);
    const LayerId layer = layer_of[owner.index()];
    if (!is_among(updated, owner) || is_among(always, owner) || !layer.valid()) continue;
    Layer& of = by_layer[layer];
    of.layer = layer;
    of.bytes += storages.bytes[s];
    if (owner == StorageId(s)) of.parameters.push_back(owner);
    if (storages.storage_class[s] != StorageClass::gradient) continue;
    if (storages.alloc_event[s].valid()) {
      of.arrival = std::max(of.arrival, storages.alloc_event[s].index());
    }
  }
  std::vector<Layer> layers;
  for (auto& [layer, of] : by_layer) layers.push_back(std::move(of));
  if (layers.size() < 2) return nullptr;
  std::stable_sort(layers.begin(), layers.end(),
                   [](const Layer& a, const Layer& b) { return a.arrival < b.arrival; });
  return std::unique_ptr<MixedUpdates>(
      new MixedUpdates(std::move(layers), std::move(always), recorded, request, best));
}

MixedUpdates::MixedUpdates(std::vector<Layer> layers, std::vector<StorageId> always,
                           const simulator::StepIndex& recorded, const PlanRequest& request,
                           BestPlan& best)
    : layers_(std::move(layers)),
      always_(std::move(always)),
      recorded_(recorded),
      request_(request),
      best_(best) {}

// As many bytes as that, or the layer more that comes closest.
MixedUpdates::OnHost MixedUpdates::on_host(const Share& share) const {
  Wide all = 0;
  for (const Layer& layer : layers_) all += layer.bytes;
  OnHost on_host(layers_.size());
  Wide seen = 0;
  Wide taken = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Wide half = layers_[i].bytes / 2;
    seen += layers_[i].bytes;
    const Wide wanted = (share.in_turns ? seen : all) * share.parts / kParts;
    if (taken + half > wanted) continue;
    on_host[i] = true;
    taken += layers_[i].bytes;
  }
  return on_host;
}

const Climb& MixedUpdates::Ends::faster() const {
  return device.step && (!host.step || *device.step <= *host.step) ? device : host;
}

// Where the time beside compute that one of them takes falls as that of the other one grows.
std::int64_t MixedUpdates::balanced(const Ends& ends) const {
  const Nanoseconds compute = recorded_.resident_time().back();
  const Nanoseconds device = ends.device.step.value_or(ends.least_on_device);
  const Nanoseconds host = ends.host.step.value_or(ends.least_on_host);
  const Wide of_device = std::max<Nanoseconds>(device - compute, 1);
  const Wide of_host = std::max<Nanoseconds>(host - compute, 1);
  return static_cast<std::int64_t>(kParts * of_device / (of_device + of_host));
}

simulator::Structure MixedUpdates::with(const OnHost& on_host, simulator::Structure as) const {
  as.host_updates = always_;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!on_host[i]) continue;
    const std::vector<StorageId>& more = layers_[i].parameters;
    as.host_updates.insert(as.host_updates.end(), more.begin(), more.end());
  }
  std::sort(as.host_updates.begin(), as.host_updates.end());
  return as;
}

std::vector<Choice> MixedUpdates::choices(const StructureSearch& in, const OnHost& on_host,
                                          const Ends& ends) const {
  const Climb& device = ends.device;
  const Climb& host = ends.host;
  if (device.choices.empty()) return in.choices_like(*host.in, host.choices);
  std::vector<Choice> all = in.choices_like(*device.in, device.choices);
  if (host.choices.empty()) return all;
  const std::vector<Choice> there = in.choices_like(*host.in, host.choices);
  const std::vector<Movable>& movable = in.footprints().movable();
  for (std::size_t m = 0; m < movable.size(); ++m) {
    for (std::size_t i = 0; i < layers_.size() && movable[m].is_layer(); ++i) {
      if (on_host[i] && layers_[i].layer == movable[m].layer) all[m] = there[m];
    }
  }
  return all;
}

// On any thread.
void MixedUpdates::look(Look& look, const Ends& ends, Nanoseconds least) const {
  const Climb& from = ends.faster();
  auto made = StructureSearch::make(recorded_.step().recording(),
                                    with(look.on_host, from.in->structure()), request_);
  if (!made) return;
  look.search = std::move(made).value();
  StructureSearch& in = *look.search;
  in.evaluator().begin(best_.spent, {});
  if (in.floor().bytes > from.point.bytes) return;
  StructureSearch::Effort effort{.quota = kLookQuota};
  effort.seed = {choices(in, look.on_host, ends), from.step.has_value()};
  look.found = in.estimate(from.point.bytes, least, effort);
}

void MixedUpdates::look_at(const std::vector<Share>& shares, const Ends& ends, Nanoseconds least,
                           Looks& all) {
  std::vector<Look> looks;
  for (const Share& share : shares) {
    OnHost chosen = on_host(share);
    const auto count = std::count(chosen.begin(), chosen.end(), true);
    if (count == 0 || static_cast<std::size_t>(count) == layers_.size()) continue;
    if (std::find(all.seen.begin(), all.seen.end(), chosen) != all.seen.end()) continue;
    if (all.seen.size() >= kMostLooks) break;
    all.seen.push_back(chosen);
    looks.push_back({share, std::move(chosen)});
  }
  in_parallel(looks.size(), [&](std::size_t i) { look(looks[i], ends, least); });
  for (Look& each : looks) {
    if (each.search == nullptr) continue;
    ++best_.structures;
    best_.spent.add(each.search->evaluator().spent());
    if (each.found) all.found.push_back(std::move(each));
  }
  std::stable_sort(all.found.begin(), all.found.end(), [](const Look& a, const Look& b) {
    return a.found->candidate.result.step_ns < b.found->candidate.result.step_ns;
  });
  best_.report();
}

void MixedUpdates::solve(const Ends& ends, Nanoseconds least) {
  if (best_.reached(least)) return;
  std::vector<Share> shares;
  const std::int64_t middle = balanced(ends);
  for (const std::int64_t more : {0, -1, 1, -2, 2}) {
    for (const bool in_turns : {true, false}) shares.push_back({middle + more * kFar, in_turns});
  }
  Looks all;
  look_at(shares, ends, least, all);
  for (std::int64_t step = kFar / 2; step > 0 && !all.found.empty() && !best_.over(); step /= 2) {
    const auto [parts, in_turns] = all.found.front().share;
    look_at({{parts - step, in_turns}, {parts + step, in_turns}}, ends, least, all);
  }
  const Bytes budget = ends.faster().point.bytes;
  for (std::size_t i = 0; i < std::min(all.found.size(), kMostSearched) && !best_.over(); ++i) {
    StructureSearch& in = *searches_.emplace_back(std::move(all.found[i].search));
    StructureSearch::Effort effort;
    effort.quota = evaluations_for(in.index());
    effort.seed.choices = std::move(all.found[i].found->choices);
    // A search goes another way within less, to what may be better within the budget, too.
    for (const Bytes eighths : {8, 7}) {
      in.evaluator().begin(best_.spent, best_.step());
      if (best_.answer()) effort.below = best_.step();
      best_.offer(in, in.solve(budget / 8 * eighths, least, effort));
      best_.spent.add(in.evaluator().spent());
    }
  }
}

}  // namespace stowage::planner
