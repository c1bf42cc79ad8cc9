// Clipping of a step's gradients by their global norm, between backward and the update.
#pragma once

#include <vector>

#include "executor/model.h"

namespace stowage::executor {

// As torch.nn.utils.clip_grad_norm_: where the 2-norm of all gradients is above `most`, each is
// multiplied, in place, by what brings it there. On the device, with no wait for it.
void clip_gradients(const std::vector<NamedTensor>& parameters, double most);

}  // namespace stowage::executor
