// Random steps of a few layers in a row, each a callable that can run again.
#pragma once

#include <random>

#include "traces/trace.h"

namespace stowage::testing {

enum class ChainOps { of_layers, alone_too };

// `layers` layers "layers.N" of two or three ops, of which with `alone_too` every third may run
// again by itself; each is given what the one before it returned,
// and saves some of what it makes. Sizes, work and what is saved are drawn; the link takes about as
// long for what is saved as compute takes for the step.
[[nodiscard]] Trace random_chain(std::mt19937_64& random, int layers,
                                 ChainOps ops = ChainOps::of_layers);

}  // namespace stowage::testing
