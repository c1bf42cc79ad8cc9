#!/usr/bin/env bash
# Builds Stowage into $STOWAGE_HOME/prefix, unless it is there already (a cache brought it, or the runner keeps
# it). Copy it into your repository as ci/install_stowage.sh.
#
#   STOWAGE_HOME        holds the source, LibTorch (in source/.venv) and the prefix; keep or cache all of it
#   STOWAGE_REPOSITORY  where to clone it from
#   STOWAGE_VERSION     the branch or tag; baselines say with which version they were made
set -euo pipefail
: "${STOWAGE_HOME:?}" "${STOWAGE_REPOSITORY:?}" "${STOWAGE_VERSION:?}"

if [[ -x $STOWAGE_HOME/prefix/bin/stowage-torch ]]; then
  "$STOWAGE_HOME/prefix/bin/stowage" --version
  exit 0
fi
mkdir -p "$STOWAGE_HOME"
git clone --depth 1 --branch "$STOWAGE_VERSION" "$STOWAGE_REPOSITORY" "$STOWAGE_HOME/source"
cd "$STOWAGE_HOME/source"
source scripts/setup.sh
stowage_setup torch
cmake --preset release -DSTOWAGE_WERROR=OFF \
  -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_BENCH=OFF -DSTOWAGE_BUILD_EXAMPLES=OFF -DSTOWAGE_BUILD_PYTHON=OFF
cmake --build --preset release --parallel "$(stowage_jobs)"
cmake --install build/release --prefix "$STOWAGE_HOME/prefix"
