#!/usr/bin/env bash
# The main job, end to end, on this machine's CPU: record a step of a small GPT-2, plan it for 60 % of its
# peak, run it under the plan, and compare with the run without. The first time it also installs and builds
# what is needed (minutes); after that it takes seconds. What it writes lies in build/demo/.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$STOWAGE_ROOT"
if (( $# )); then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  [[ $1 == --help ]] && exit 0 || exit 2
fi

stowage_setup torch
stowage_say "Build (release)"
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --parallel "$(stowage_jobs)" --target stowage stowage-torch >&2

stowage=build/release/bin/stowage
out=build/demo
trace=$out/gpt2.trace.json.gz
plan=$out/gpt2.plan.json
mkdir -p "$out"
rm -f "$trace" "$plan" "$out/execute.json" "$out/verify.json"

stowage_say "1/4 Profile: one step of GPT-2 (6 layers, width 256, 256 tokens), batch 4"
"$stowage" profile gpt2:layers=6,width=256,seq=256,vocab=1024 --device cpu --batch 4 -o "$trace"
stowage_say "2/4 Plan: 60 % of the peak"
"$stowage" plan "$trace" --budget 60% -o "$plan"
stowage_say "3/4 Execute: three steps under the plan"
"$stowage" execute --plan "$plan" --trace "$trace" --device cpu --steps 3 --json > "$out/execute.json"
stowage_say "4/4 Verify: the same steps with and without the plan, bit by bit"
verified=0
"$stowage" verify --plan "$plan" --trace "$trace" --json > "$out/verify.json" || verified=$?
# 1 is an answer, "not equal", and the table shows where. Anything else is no answer.
(( verified <= 1 )) || exit "$verified"

"$stowage" demo-report --trace "$trace" --plan "$plan" --verify "$out/verify.json"

cat <<NEXT

What to try next
  Who makes the peak:
    $stowage inspect $trace
  A smaller budget, and why each tensor moves:
    $stowage plan $trace --budget 50% --explain
  What everybody does by hand:
    $stowage simulate $trace --policy save_on_cpu
  The same to look at, with a budget line to drag:
    cmake --preset gui && cmake --build --preset gui --target stowage-gui
    build/gui/bin/stowage-gui $trace $plan
  What an impossible budget is told:
    $stowage plan $trace --budget 1MiB
  Another model ('$stowage models' lists them):
    $stowage profile mlp --device cpu -o $out/mlp.trace.json.gz
NEXT
exit "$verified"
