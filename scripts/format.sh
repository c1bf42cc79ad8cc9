#!/usr/bin/env bash
# Formats every C++ file; with --check only says which are not formatted (the test structure.format).
#
# One version of clang-format, because each breaks some lines differently. Without it --check ends with 77,
# which ctest shows as skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=14

tool=$(command -v "clang-format-$version" || command -v clang-format || true)
if [[ -z $tool ]]; then
  echo "SKIPPED: clang-format is not installed (apt install clang-format)"
  exit 77
fi
if ! "$tool" --version | grep -q "version $version\."; then
  echo "SKIPPED: the files are formatted by clang-format $version, this is $("$tool" --version)"
  exit 77
fi

folders=()
for folder in traces simulator planner report profiler executor cli gui include python tests bench examples; do
  if [[ -d $folder ]]; then
    folders+=("$folder")
  fi
done
mapfile -d '' files < <(find "${folders[@]}" \( -name '*.h' -o -name '*.cpp' \) -print0 | sort -z)
if (( ${#files[@]} == 0 )); then
  exit 0
fi

case ${1:-} in
  '') "$tool" -i "${files[@]}" ;;
  --check)
    unformatted=$("$tool" --dry-run "${files[@]}" 2>&1 | sed -n 's/:[0-9]*:[0-9]*: warning:.*//p' |
      sort | uniq -c)
    if [[ -n $unformatted ]]; then
      printf 'Places that are not formatted, by file (scripts/format.sh formats them):\n%s\n' \
        "$unformatted" >&2
      exit 1
    fi
    echo "${#files[@]} files are formatted"
    ;;
  *)
    echo "usage: scripts/format.sh [--check]" >&2
    exit 2
    ;;
esac
