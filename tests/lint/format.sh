#!/usr/bin/env bash
# Checks (or with --fix makes) the formatting of every tracked C, C++ and JavaScript file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files -z '*.h' '*.cc' '*.c' '*.cuh' '*.js' | xargs -0 clang-format-19 "${mode[@]}"
