#!/usr/bin/env bash
# Every shell script parses, and those that people start have the run bit.
set -euo pipefail
cd "$1"
status=0
while IFS= read -r -d '' script; do
  bash -n "$script" || status=1
done < <(find scripts tests examples .ci -name '*.sh' -print0)
for script in scripts/setup.sh scripts/demo.sh scripts/test.sh examples/ci/install_stowage.sh .ci/run; do
  if [[ ! -x $script ]]; then
    echo "$script: missing, or without the run bit" >&2
    status=1
    continue
  fi
  bash -n "$script" || status=1
done
exit $status
