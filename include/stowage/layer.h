// stowage::layer(): a part of a model that reports name and that plans can act on; stowage::tail():
// the end of its forward, which plans can run in parts of the batch;
// stowage::executor::consume() gives it a tensor that nobody else holds then.
#pragma once

#include "executor/layer.h"
#include "executor/models/consume.h"
#include "executor/tail.h"
