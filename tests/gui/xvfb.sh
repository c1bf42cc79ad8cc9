#!/usr/bin/env bash
# Runs a test program on an X server without a screen; what it needs beyond Qt's offscreen platform (windows
# that are mapped, focus, grabs, scaling) is real there. Ends with 77 (skipped) where there is no Xvfb.
#
#   xvfb.sh PROGRAM [ARG..]
set -euo pipefail
if ! command -v xvfb-run >/dev/null || ! command -v Xvfb >/dev/null; then
  echo "skipped: no xvfb (apt install xvfb xauth)"
  exit 77
fi
unset WAYLAND_DISPLAY
export QT_QPA_PLATFORM=xcb
exec xvfb-run --auto-servernum --server-args="-screen 0 1600x1200x24" "$@"
