#!/usr/bin/env bash
# seal_archive.sh OUT.a OURS.a THEIRS.a...
#
# One archive with all of OURS and THEIRS inside, in which only kiln's symbols can be linked to: a
# program that links it may hold another version of protobuf.
set -euo pipefail
out=$1 ours=$2
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# COMDAT groups are dissolved, else the linker could replace a hidden function by its namesake.
ld -r --force-group-allocation -o "$work/joined.o" --whole-archive "$@" --no-whole-archive
nm --defined-only --extern-only --format=just-symbols "$ours" | grep 4kiln | sort -u >"$work/keep"
# Unique symbols stay global whatever one asks, so they get names of their own.
nm --defined-only "$work/joined.o" | awk '$2 == "u" { print $3, "kiln_sealed" $3 }' \
  >"$work/rename"
objcopy --keep-global-symbols="$work/keep" --redefine-syms="$work/rename" \
  "$work/joined.o" "$work/sealed.o"
mkdir -p "$(dirname "$out")"
rm -f "$out"
ar rcs "$out" "$work/sealed.o"
