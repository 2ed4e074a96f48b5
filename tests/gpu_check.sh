#!/usr/bin/env bash
# What needs a GPU: builds nothing, runs prebuilt programs. Kiln's engines against ONNX's reference
# data and ONNX Runtime, the comparison with PyTorch, then the sanitizers.
#
# BIN_FOLDER has engine-build, engine-run, engine-inspect and kiln_conformance.
#
#   tests/gpu_check.sh BIN_FOLDER CASES_FOLDER OUTPUT_FOLDER TREE_HASH [TIMING_CACHE]
#
# python3 needs numpy, onnx, onnxruntime, torch, torchvision and transformers. Where there is no GPU
# it says so and does nothing.
set -uo pipefail
bin=$(realpath "${1:?programs}") cases=$(realpath "${2:?cases}") out=$(realpath "${3:?output}")
tree=${4:?tree hash} cache=${5:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! nvidia-smi > /dev/null 2>&1; then
  echo "skipped: no GPU here"
  exit 0
fi
note() { echo "::: $1: $([ "$2" = 0 ] && echo passed || echo "FAILED ($2)")"; [ "$2" = 0 ] || failed=1; }

# Cases and models first: a wrong engine's speed is of no interest.
ls -d "$cases"/semantics/*/ |
  xargs -P 8 -n 8 "$bin/kiln_conformance" --stage engine --limit-seconds 100 > "$out/semantics.txt" &
semantics=$!
python3 "$here/models/check.py" "$bin" --target cuda --max-batch 4 > "$out/tiny_fp32.txt" 2>&1 &
fp32=$!
python3 "$here/models/check.py" "$bin" --target cuda --max-batch 2 --half --only '*_torchscript' \
  > "$out/tiny_half.txt" 2>&1 &
half=$!
wait $semantics; note "semantics cases" $?
wait $fp32; note "tiny models, fp32" $?
wait $half; note "tiny models, fp16 and bf16" $?
tail -n 1 "$out/tiny_fp32.txt" "$out/tiny_half.txt"
awk '/cases:/ {n += $1; p += $3} END {print n " semantics cases, " p " passed"}' "$out/semantics.txt"

[ -n "$cache" ] && mkdir -p "$work/bench" && cp "$cache" "$work/bench/timing.json"
python3 "$here/bench/compare_torch.py" "$bin" "$work/bench" --modes reduce-overhead --rounds 2 \
  --tree "$tree" --json "$out/rows.json"
note "comparison with PyTorch" $?
cp "$work"/bench/*.txt "$out/"

"$bin/engine-build" --onnx "$here/../apps/demo/digits.onnx" --output "$work/digits.engine" \
  --target cuda --fp16 --batches 1,8 --quiet
for tool in memcheck racecheck initcheck synccheck; do
  timeout 60 compute-sanitizer --tool $tool --error-exitcode 9 "$bin/engine-run" "$work/digits.engine" \
    --batch 5 > "$out/$tool.txt" 2>&1
  note "$tool" $?
done
exit $failed
