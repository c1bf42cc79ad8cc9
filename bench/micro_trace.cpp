// The tests' trace builder, for benchmarks too: the bench is built without the tests' library.
#include "tests/support/micro_trace.cpp"
