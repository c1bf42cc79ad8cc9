#!/usr/bin/env bash
# Builds and runs every test.
#
#   scripts/test.sh               presets core (no LibTorch, CUDA, Qt), gui and release
#   scripts/test.sh --gui         preset gui alone, the desktop program: its own tests
#   scripts/test.sh --sanitize    these, then every file compiled by itself, ASan and UBSan on the core, the CPU
#                                 executor (random plans included) and the desktop program, TSan on the core, the
#                                 devices and copy threads, the executor, its hooks and waits
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$STOWAGE_ROOT"

build() {  # build PRESET [CONFIGURE OPTION..] [-- BUILD OPTION..]
  local preset=$1 configure=()
  shift
  while (( $# )) && [[ $1 != -- ]]; do
    configure+=("$1")
    shift
  done
  stowage_say "Build ($preset)"
  cmake --preset "$preset" --log-level=WARNING "${configure[@]}" >/dev/null
  cmake --build --preset "$preset" --parallel "$(stowage_jobs)" "${@:2}"
}

check() {  # check PRESET [CTEST OPTION..]
  stowage_say "Test ($1)"
  ctest --preset "$1" --parallel 2 --no-tests=error "${@:2}"
}

# Models that Python exports are no longer skipped; a LibTorch of the user's own has no Python to export with.
exports() {
  if stowage_torch_is_whole; then
    stowage_exports
    export STOWAGE_EXPORTS_NEEDED=1
  else
    stowage_say "no torch in .venv: models that Python exports are skipped"
  fi
}

desktop() {
  build gui
  check gui --tests-regex '^(gui|package\.desktop)'
}

# The three presets have the same flags, so ccache compiles the core once, and its own tests run once.
plain() {
  build core
  check core
  desktop
  build release
  check release --label-exclude '^(traces|simulator|planner|profiler|report|predictions)$' \
    --exclude-regex '^structure\.(sources|architecture|doc_paths|format|scripts|core_alone|suites)'
}

# The other presets compile ten files as one, where one's includes are there for the next.
includes() {
  build debug -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_BENCH=ON
  check release -C full --tests-regex '^structure\.headers$'
}

# Of tests/profiler_torch, what hooks and copy threads do at once; the rest does it again.
TSAN_SUITES='^profiler_torch\.(Reentry|NestedBackward|TwoModels|KeptViews|DividedStep|DividedTail|SkippedUpdate|StreamedPlans|.*HostUpdate|StreamedByHand|RandomShards|UnfinishedStep|UnpackTwice|WriteInFlight|Threads)'

sanitize() {
  # One OpenMP thread: LibTorch's libgomp is not instrumented, so TSan would not see its barriers.
  export OMP_NUM_THREADS=1

  export ASAN_OPTIONS=detect_stack_use_after_return=1:check_initialization_order=1
  export UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$STOWAGE_ROOT/tests/gui/lsan.supp:print_suppressions=0
  build asan -DSTOWAGE_WITH_TORCH=ON -DSTOWAGE_WITH_GUI=ON -- --target stowage_sanitized_tests
  check asan --exclude-regex '^gui_xvfb$' --label-regex \
    '^(traces|simulator|planner|report|profiler|cli|fuzz|device|executor|recompute|profiler_torch|waits|gui_model|gui)$'

  # Of LibTorch itself TSan sees only calls to malloc, locks and the like: without their memory
  # accesses it would report half the story. Races in our own code are still found.
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1:second_deadlock_stack=1
  # Kernels with 32 bits of address randomization place memory where GCC 13's TSan cannot have it.
  local fixed_addresses=()
  if setarch -R true 2>/dev/null; then
    fixed_addresses=(setarch -R)
  fi
  build tsan -DSTOWAGE_WITH_TORCH=ON -- --target stowage_sanitized_tests
  stowage_say "Test (tsan)"
  "${fixed_addresses[@]}" ctest --preset tsan --parallel 2 --no-tests=error \
    --label-regex '^(traces|simulator|planner|report|profiler|device|executor|recompute|waits)$'
  "${fixed_addresses[@]}" ctest --preset tsan --parallel 2 --no-tests=error --tests-regex "$TSAN_SUITES"
}

case ${1:-} in
  '')
    stowage_setup gui
    stowage_setup torch
    exports
    plain
    ;;
  --gui)
    stowage_setup gui
    desktop
    ;;
  --sanitize)
    stowage_setup gui
    stowage_setup torch
    exports
    plain
    includes
    sanitize
    ;;
  *)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
    [[ $1 == --help ]] || exit 2
    ;;
esac
