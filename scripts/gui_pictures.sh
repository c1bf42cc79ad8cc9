#!/usr/bin/env bash
# Draws the pictures of README.md and docs/gui.md with the programs of build/gui, without a display. Those of
# docs/gui.md are taken by the tests that do its tasks.
#
#   scripts/gui_pictures.sh [BIN]        BIN: folder with stowage, stowage-gui and stowage_gui_tests (default
#                                        build/gui/bin)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/gui/bin}
trace=traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz
folder=$(mktemp -d)
plan=$folder/llama.plan.json  # its name is in the picture
trap 'rm -rf "$folder"' EXIT
export QT_QPA_PLATFORM=offscreen
"$bin/stowage" plan "$trace" --budget 60% -o "$plan" --quiet >/dev/null
"$bin/stowage-gui" --screenshot docs/pictures/gui.png --size 1400x900 "$trace" "$plan"
gpt=traces/samples/gpt2-bf16-h200.trace.json.gz
"$bin/stowage" plan "$gpt" --budget 50% -o "$folder/gpt2.plan.json" --quiet >/dev/null
"$bin/stowage-gui" --screenshot docs/pictures/gui_recompute.png --size 1400x900 "$gpt" "$folder/gpt2.plan.json"
STOWAGE_PICTURES=$PWD/docs/pictures "$bin/stowage_gui_tests" --gtest_brief=1 --gtest_filter='UserTasks.*'
