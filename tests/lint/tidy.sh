#!/usr/bin/env bash
# Runs clang-tidy over Kiln's sources as configured in a build folder.
#
#   tests/lint/tidy.sh BUILD_FOLDER --all
#   tests/lint/tidy.sh BUILD_FOLDER --changed   only what differs from the main branch's remote,
#                                               or else from the commit before
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1
pattern=('formats/*.cc' 'engine/*.cc' 'builder/*.cc' 'calibration/*.cc' 'plugins/*.cc' 'apps/*.cc')

base() {
  git merge-base HEAD origin/main 2>/dev/null | grep -vx "$(git rev-parse HEAD)" ||
    git rev-parse --verify -q HEAD~
}

if [[ "$2" == --changed ]] && base=$(base); then
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- "${pattern[@]}")
else
  mapfile -t files < <(git ls-files -- "${pattern[@]}")
fi
[[ ${#files[@]} -eq 0 ]] && { echo "clang-tidy: nothing changed"; exit 0; }

# Generated headers must exist before a source that includes them can be read.
cmake --build "$build" --target kiln_generated >/dev/null
echo "clang-tidy: ${#files[@]} files"
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p "$build" --quiet
