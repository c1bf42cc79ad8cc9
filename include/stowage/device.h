// Where a step runs: stowage::executor::Device, of which cpu_device() and, in a build with CUDA,
// cuda_device() give the process's own. To be made before the first tensor on it.
#pragma once

#include "executor/device/cpu_device.h"
#include "executor/device/device.h"
#ifdef STOWAGE_HAVE_CUDA
#include "executor/device/cuda/cuda_device.h"
#endif
