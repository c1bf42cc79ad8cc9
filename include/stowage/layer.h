// stowage::layer(): a part of a model that reports name and that plans can act on;
// stowage::executor::consume() gives it a tensor that nobody else holds then.
#pragma once

#include "executor/layer.h"
#include "executor/models/consume.h"
