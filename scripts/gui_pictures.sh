#!/usr/bin/env bash
# Draws docs/pictures/gui.png from a sample trace with the programs of build/gui, without a display.
#
#   scripts/gui_pictures.sh [BIN]        BIN: folder with stowage and stowage-gui (default build/gui/bin)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/gui/bin}
trace=traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz
plan=$(mktemp --suffix=.plan.json)
trap 'rm -f "$plan"' EXIT
"$bin/stowage" plan "$trace" --budget 60% -o "$plan" --quiet >/dev/null
QT_QPA_PLATFORM=offscreen "$bin/stowage-gui" --screenshot docs/pictures/gui.png --size 1400x900 "$trace" "$plan"
