// How layers that run again end ahead of their end.
#pragma once

namespace stowage::executor {

// Ends layers that run again once nothing more of them is needed: thrown where they save the last
// tensor, through their functions. No std::exception, so that nobody takes it for an error.
struct RunEnded {};

// A process whose layers are another language's functions cannot have it thrown through their
// frames: `thrower` throws in its place what carries over there, and what comes back into C++ of
// that is RunEnded again. To be set before the first step.
void carry_run_ended(void (*thrower)());

}  // namespace stowage::executor
