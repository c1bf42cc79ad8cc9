// A library like any other; with MISSING_SYMBOL one that cannot be loaded.
extern "C" int stowage_test_missing_symbol();

extern "C" int answer() {
#ifdef MISSING_SYMBOL
  return stowage_test_missing_symbol();
#else
  return 42;
#endif
}
