// Any torch::nn::Sequential as a stowage::executor::Model, or its forward alone, each module a
// layer.
#pragma once

#include "executor/models/sequential.h"
