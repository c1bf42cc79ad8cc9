#include "cli/baseline.h"

#include "traces/build_info.h"

namespace stowage::cli {
namespace {

std::string or_none(const std::string& text) {
  return text.empty() ? "none" : text;
}

std::string memory_of(const std::string& placement) {
  return placement == "planned" ? "planned memory" : "the caching allocator's memory";
}

}  // namespace

std::string portable_model(const std::string& model) {
  for (const std::string prefix : {"plugin:", "script:"}) {
    if (!model.starts_with(prefix)) continue;
    // Options are KEY=VALUE, and their values may hold a slash.
    const std::size_t slash = model.rfind('/', model.find('='));
    if (slash == std::string::npos || slash < prefix.size()) return model;
    return prefix + model.substr(slash + 1);
  }
  return model;
}

StepIdentity step_identity(const Run& run) {
  return {portable_model(run.model), run.batch, run.seq, run.dtype, run.autocast, run.optimizer,
          run.grad_scaler,           run.seed};
}

MadeWith made_with(const Run& run, const Environment& env, const std::string& plan,
                   const std::string& placement) {
  const bool on_cpu = env.device == "cpu";
  return {.stowage = std::string(kVersion),
          .libtorch = env.torch,
          .device = env.device,
          .device_name = on_cpu ? std::string() : env.device_name,
          .allocator = env.allocator,
          .threads = on_cpu ? run.threads : 0,
          .deterministic = run.deterministic,
          .plan = plan,
          .placement = placement};
}

Status check_same_step(const Baseline& baseline, const std::string& file, const StepIdentity& step,
                       const std::string& hint) {
  struct Field {
    const char* key;
    std::string then;
    std::string now;
  };
  const StepIdentity& old = baseline.step;
  const Field fields[] = {
      {"model", old.model, step.model},
      {"batch", std::to_string(old.batch), std::to_string(step.batch)},
      {"seq", std::to_string(old.seq), std::to_string(step.seq)},
      {"dtype", old.dtype, step.dtype},
      {"autocast", old.autocast, step.autocast},
      {"optimizer", old.optimizer, step.optimizer},
      {"grad_scaler", old.grad_scaler, step.grad_scaler},
      {"seed", std::to_string(old.seed), std::to_string(step.seed)},
  };
  for (const Field& field : fields) {
    if (field.then == field.now) continue;
    return Error{ErrorCode::bad_input,
                 std::string("the baseline is of another step: its ") + field.key + " is " +
                     or_none(field.then) + ", this one's is " + or_none(field.now),
                 file, std::string("/step/") + field.key, hint};
  }
  return Unit{};
}

std::vector<std::string> differences(const MadeWith& then, const MadeWith& now) {
  std::vector<std::string> lines;
  const auto differ = [&lines](const std::string& what, const std::string& a,
                               const std::string& b) {
    if (a != b) lines.push_back("made with " + what + " " + or_none(a) + ", this is " + or_none(b));
  };
  differ("stowage", then.stowage, now.stowage);
  differ("LibTorch", then.libtorch, now.libtorch);
  differ("device", then.device, now.device);
  if (then.device == now.device) {
    differ("device", then.device_name, now.device_name);
    differ("allocator", then.allocator, now.allocator);
    differ("threads", std::to_string(then.threads), std::to_string(now.threads));
  }
  differ("determinism", then.deterministic ? "on" : "off", now.deterministic ? "on" : "off");
  if (!then.placement.empty() && !now.placement.empty() && then.placement != now.placement) {
    lines.push_back("made in " + memory_of(then.placement) + ", this is in " +
                    memory_of(now.placement));
  }
  differ("plan", then.plan.substr(0, 19), now.plan.substr(0, 19));
  return lines;
}

}  // namespace stowage::cli
