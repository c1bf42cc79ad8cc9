#!/usr/bin/env bash
# Formatting, by one version of clang-format: each version breaks some lines differently.
set -euo pipefail
cd "$1"
version=14
tool=$(command -v "clang-format-$version" || command -v clang-format || true)
if [[ -z $tool ]]; then
  echo "SKIPPED: clang-format is not installed (apt install clang-format)"
  exit 77
fi
if ! "$tool" --version | grep -q "version $version\."; then
  echo "SKIPPED: formatting is checked by clang-format $version, this is $("$tool" --version)"
  exit 77
fi
folders=()
for folder in traces simulator planner profiler executor cli gui tests bench examples; do
  [[ -d $folder ]] && folders+=("$folder")
done
mapfile -d '' files < <(find "${folders[@]}" \( -name '*.h' -o -name '*.cpp' \) -print0 | sort -z)
(( ${#files[@]} )) || exit 0
if ! "$tool" --dry-run --Werror "${files[@]}" 2> >(grep -E 'error:' | cut -d: -f1,2 | sort -u >&2); then
  echo "Not formatted. To format: clang-format -i FILE.." >&2
  exit 1
fi
echo "${#files[@]} files are formatted"
