#!/usr/bin/env bash
# Installs what is missing to build and test Stowage, and nothing else. The second run finds everything in
# place, takes no time and needs no network.
#
#   scripts/setup.sh [core|gui|python|torch|exports]
#                                    gui: Qt for the desktop program, too; python: what the Python package is built
#                                    and tested with, into .venv; torch, the default, puts LibTorch there, too;
#                                    exports, which tests/scripts needs and scripts/test.sh asks for, torchvision,
#                                    transformers, lightning and captum beside it
#   source scripts/setup.sh          gives the functions below to another script
#
# System packages come from apt, as root or through sudo; without either, what is missing is named and the
# exit code is 4. LibTorch is the PyPI package torch (the CUDA libraries come with it; no GPU, driver or CUDA
# toolkit is needed).

STOWAGE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STOWAGE_VENV="$STOWAGE_ROOT/.venv"
STOWAGE_TORCH_VERSION=2.11.0
STOWAGE_TORCHVISION_VERSION=0.26.0  # the one made for that torch
STOWAGE_TRANSFORMERS_VERSION=5.23.0
STOWAGE_ACCELERATE_VERSION=1.15.0
STOWAGE_LIGHTNING_VERSION=2.6.6
STOWAGE_CAPTUM_VERSION=0.9.0
STOWAGE_CMAKE_VERSION=3.25
STOWAGE_HIGHS_VERSION=1.15.1
STOWAGE_NANOBIND_VERSION=3.1.0
STOWAGE_SCIKIT_BUILD_VERSION=1.1.2  # scikit-build-core
STOWAGE_PYTEST_VERSION=9.2.0
STOWAGE_PANDAS_VERSION=3.1.1
STOWAGE_SCHEMAS_VERSION=0.39.0  # of check-jsonschema, which brings GitHub's and GitLab's schemas

stowage_say() {
  if [[ -t 2 && -z ${NO_COLOR:-} ]]; then
    printf '\033[1m== %s\033[0m\n' "$*" >&2
  else
    printf '== %s\n' "$*" >&2
  fi
}

stowage_missing_environment() {
  printf 'setup: error: %s\n' "$*" >&2
  return 4
}

# One line a need: Debian package, then the command or the header that proves it is there without it.
stowage_needs() {
  cat <<'NEEDS'
g++ g++
ninja-build ninja
cmake cmake
python3 python3
ccache ccache
zlib1g-dev /usr/include/zlib.h
nlohmann-json3-dev /usr/include/nlohmann/json.hpp
libcli11-dev /usr/include/CLI/CLI.hpp
libxxhash-dev /usr/include/xxhash.h
libgtest-dev /usr/include/gtest/gtest.h
libgmock-dev /usr/include/gmock/gmock.h
libbenchmark-dev /usr/include/benchmark/benchmark.h
libxml2-utils xmllint
NEEDS
  [[ ${1:-torch} != gui ]] || cat <<'NEEDS'
qt6-base-dev /usr/include/qt6/QtWidgets/QWidget
xvfb xvfb-run
xauth xauth
desktop-file-utils desktop-file-validate
NEEDS
}

# The headers of the Python in .venv, or of the one that will be.
stowage_python_headers() {
  local python=$STOWAGE_VENV/bin/python
  [[ -x $python ]] || python=python3
  "$python" -c 'import os.path as p, sys, sysconfig as s
sys.exit(not p.exists(p.join(s.get_path("include"), "Python.h")))' 2>/dev/null
}

stowage_missing_packages() {  # stowage_missing_packages [gui]
  local package proof
  while read -r package proof; do
    case $proof in
      /*)
        if command -v dpkg-query >/dev/null; then
          [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] && continue
        fi
        [[ -e $proof || -e ${proof/#\/usr\/include/\/usr\/local\/include} ]] || echo "$package"
        ;;
      *) command -v "$proof" >/dev/null || echo "$package" ;;
    esac
  done < <(stowage_needs "$@")
  case ${1:-torch} in
    python | torch | exports) stowage_python_headers || echo python3-dev ;;
  esac
  if [[ ! -x $STOWAGE_VENV/bin/python ]] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo python3-venv
  fi
}

stowage_install_packages() {
  local missing=("$@") as_root=()
  if ! command -v apt-get >/dev/null; then
    stowage_missing_environment "please install (Debian's names): ${missing[*]}"
    return
  fi
  if (( EUID != 0 )); then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      stowage_missing_environment "no root and no sudo; please run: apt-get install ${missing[*]}"
      return
    fi
    as_root=(sudo)
  fi
  stowage_say "apt-get install ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -qq)
  { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends ca-certificates "${missing[@]}"; } \
    >&2 || stowage_missing_environment "apt-get could not install: ${missing[*]}"
}

stowage_venv() {
  [[ -x $STOWAGE_VENV/bin/python ]] && "$STOWAGE_VENV/bin/python" -c '' 2>/dev/null && return
  python3 -m venv --clear "$STOWAGE_VENV" >&2 ||
    stowage_missing_environment "python3 -m venv $STOWAGE_VENV failed"
}

stowage_cmake_is_new() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n '1s/[^0-9]*//p') || return 1
  [[ -n $version && $(printf '%s\n' "$STOWAGE_CMAKE_VERSION" "$version" | sort -V | head -n1) == \
    "$STOWAGE_CMAKE_VERSION" ]]
}

# Some systems have an older CMake: then the one of PyPI, first on PATH.
stowage_cmake() {
  stowage_cmake_is_new cmake && return
  if ! stowage_cmake_is_new "$STOWAGE_VENV/bin/cmake"; then
    stowage_say "pip install cmake (the system's is older than $STOWAGE_CMAKE_VERSION)"
    stowage_venv || return
    "$STOWAGE_VENV/bin/python" -m pip install -q "cmake>=$STOWAGE_CMAKE_VERSION,<4" >&2 || {
      stowage_missing_environment "CMake $STOWAGE_CMAKE_VERSION or newer is needed"
      return
    }
  fi
  PATH="$STOWAGE_VENV/bin:$PATH"
}

# pip writes INSTALLER at the end of a package and installs what torch needs before torch itself, so an
# interrupted installation does not look whole.
stowage_torch_is_whole() {
  local site
  for site in "$STOWAGE_VENV"/lib/python3*/site-packages; do
    [[ -e $site/torch-$STOWAGE_TORCH_VERSION.dist-info/INSTALLER ]] || continue
    [[ -e $site/torch/include/ATen/ATen.h && -e $site/torch/lib/libtorch_cpu.so ]] && return 0
  done
  return 1
}

stowage_torch() {
  stowage_torch_is_whole && return
  if [[ -n ${Torch_ROOT:-} && -e $Torch_ROOT/lib/libtorch_cpu.so ]]; then
    return  # the user's own, which cmake/FindTorch.cmake takes first
  fi
  stowage_say "pip install torch==$STOWAGE_TORCH_VERSION into .venv (5 GB, a minute or two)"
  stowage_venv || return
  local pip=("$STOWAGE_VENV/bin/python" -m pip install --disable-pip-version-check -q --retries 5)
  "${pip[@]}" "torch==$STOWAGE_TORCH_VERSION" >&2 && stowage_torch_is_whole && return
  # What an interrupted installation left behind can look installed to pip.
  "${pip[@]}" --force-reinstall "torch==$STOWAGE_TORCH_VERSION" >&2 && stowage_torch_is_whole && return
  stowage_missing_environment "pip could not install torch==$STOWAGE_TORCH_VERSION" \
    "($(df -Ph "$STOWAGE_ROOT" | awk 'NR==2 {print $4}') of disk space are free)"
}

# What tests/ci judges the CI files with.
stowage_schemas() {
  "$STOWAGE_VENV/bin/python" -c "import importlib.metadata as m, sys
sys.exit(m.version('check-jsonschema') != '$STOWAGE_SCHEMAS_VERSION')" 2>/dev/null && return
  stowage_say "pip install check-jsonschema==$STOWAGE_SCHEMAS_VERSION into .venv"
  stowage_venv || return
  "$STOWAGE_VENV/bin/python" -m pip install --disable-pip-version-check -q --retries 5 \
    "check-jsonschema==$STOWAGE_SCHEMAS_VERSION" >&2 ||
    stowage_missing_environment "pip could not install check-jsonschema==$STOWAGE_SCHEMAS_VERSION"
}

# What tests/planner solves linear programmes with.
stowage_highs() {
  "$STOWAGE_VENV/bin/python" -c "import importlib.metadata as m, sys
sys.exit(m.version('highspy') != '$STOWAGE_HIGHS_VERSION')" 2>/dev/null && return
  stowage_say "pip install highspy==$STOWAGE_HIGHS_VERSION into .venv"
  stowage_venv || return
  "$STOWAGE_VENV/bin/python" -m pip install --disable-pip-version-check -q --retries 5 \
    "highspy==$STOWAGE_HIGHS_VERSION" >&2 ||
    stowage_missing_environment "pip could not install highspy==$STOWAGE_HIGHS_VERSION"
}

# What python/ is built with, and its tests run with.
stowage_python() {
  "$STOWAGE_VENV/bin/python" -c "import importlib.metadata as m, sys
sys.exit([m.version(name) for name in ('nanobind', 'scikit-build-core', 'pytest', 'pandas')] != [
    '$STOWAGE_NANOBIND_VERSION', '$STOWAGE_SCIKIT_BUILD_VERSION', '$STOWAGE_PYTEST_VERSION',
    '$STOWAGE_PANDAS_VERSION'])" 2>/dev/null && return
  stowage_say "pip install nanobind, scikit-build-core, pytest and pandas into .venv"
  stowage_venv || return
  "$STOWAGE_VENV/bin/python" -m pip install --disable-pip-version-check -q --retries 5 \
    "nanobind==$STOWAGE_NANOBIND_VERSION" "scikit-build-core==$STOWAGE_SCIKIT_BUILD_VERSION" \
    "pytest==$STOWAGE_PYTEST_VERSION" "pandas==$STOWAGE_PANDAS_VERSION" >&2 ||
    stowage_missing_environment "pip could not install nanobind, scikit-build-core, pytest and pandas"
}

# Models to export to TorchScript, and to train from Python, with the Trainers of transformers and of Lightning, and to attribute beside Captum. torchvision,
# accelerate, lightning, torchmetrics and captum without what they depend on: torch is the one that is there.
stowage_exports() {
  local python="$STOWAGE_VENV/bin/python"
  stowage_torch_is_whole || {
    stowage_missing_environment "exports need the torch of .venv: scripts/setup.sh torch"
    return
  }
  "$python" -c 'import accelerate, captum.attr, torchvision, transformers, importlib.metadata as m
for name in ("lightning", "pytorch-lightning", "lightning-utilities", "torchmetrics"): m.version(name)' 2>/dev/null && return
  stowage_say "pip install torchvision==$STOWAGE_TORCHVISION_VERSION, transformers, accelerate, lightning and captum into .venv"
  local pip=("$python" -m pip install --disable-pip-version-check -q --retries 5)
  "${pip[@]}" --no-deps "torchvision==$STOWAGE_TORCHVISION_VERSION" \
    "accelerate==$STOWAGE_ACCELERATE_VERSION" "lightning==$STOWAGE_LIGHTNING_VERSION" \
    "pytorch-lightning==$STOWAGE_LIGHTNING_VERSION" lightning-utilities torchmetrics \
    "captum==$STOWAGE_CAPTUM_VERSION" >&2 &&
    "${pip[@]}" numpy pillow psutil matplotlib tqdm packaging "transformers==$STOWAGE_TRANSFORMERS_VERSION" >&2 ||
    stowage_missing_environment "pip could not install torchvision, transformers, accelerate, lightning and captum"
}

# stowage_setup core|gui|python|torch|exports
stowage_setup() {
  local missing
  mapfile -t missing < <(stowage_missing_packages "$@")
  if (( ${#missing[@]} )); then
    stowage_install_packages "${missing[@]}" || return
  fi
  stowage_cmake || return
  if [[ ${1:-torch} == torch || ${1:-torch} == exports ]]; then
    stowage_torch || return
    stowage_schemas || return
    stowage_highs || return
  fi
  case ${1:-torch} in
    python | torch | exports) stowage_python || return ;;
  esac
  if [[ ${1:-torch} == exports ]]; then
    stowage_exports || return
  fi
}

# How many compilers at once: one a core, but 2 GB of memory for each.
stowage_jobs() {
  local cores memory
  cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)  # it obeys these
  memory=$(awk '/MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  (( memory >= 1 )) || memory=1
  echo $(( cores < memory ? cores : memory ))
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  case ${1:-torch} in
    core | gui | python | torch | exports) stowage_setup "${1:-torch}" ;;
    *)
      sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
      [[ $1 == --help ]] || exit 2
      ;;
  esac
fi
