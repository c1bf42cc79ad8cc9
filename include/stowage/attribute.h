// Gradient x activation of layers as a step that is recorded, planned and run like one that trains:
// stowage::executor::AttributedForward of a model's layers, stowage::executor::LayerGradients of
// single tensors. stowage::hold(): a tensor that user code keeps, which plans can have on the host
// meanwhile.
#pragma once

#include "executor/attributed_forward.h"
#include "executor/attribution_spec.h"
#include "executor/held.h"
#include "executor/layer_gradients.h"
