// Captum's LayerGradientXActivation of a list of layers: what the layers return, its gradients and
// all that autograd saves stay on the device until the products are made. It is about attribution
// steps (docs/models.md), whose gradients and activations are saved tensors, too.
//
// Approximated: Captum keeps both of each layer, and its product, until those of all layers are
// made; the recorded step lets each layer's go when its product is. Between the last gradient's
// arrival and the end Captum so has up to three tensors a layer, the recorded step two.
#include <string>

#include "planner/policies/policies.h"

namespace stowage::planner::builtin {

PolicyInfo captum_info() {
  return {"captum",
          "Of an attribution step: activations and gradients of all layers stay on the device, as "
          "in Captum",
          {}};
}

Rules captum_rules(const simulator::StepIndex& index, const Options& /*options*/) {
  PolicyRules rules{{keep_the_rest()}, {}, {}};
  if (index.trace().run.model.find("attribute=") == std::string::npos) {
    rules.notes.push_back(
        "the recorded step attributes nothing, so nothing of it is as in Captum (record one with "
        "stowage profile --attribute)");
  }
  return rules;
}

}  // namespace stowage::planner::builtin
