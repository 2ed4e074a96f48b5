#!/usr/bin/env bash
# Builds an engine from the demo's network, verifies it, runs it on the held-out digits and prints
# what it got right.
#
#   apps/demo/run.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:?usage: run.sh BUILD_FOLDER}
python=$("$here/../../third_party/bootstrap.sh" --python)
out="$build/demo"
mkdir -p "$out"

"$build/bin/engine-build" --onnx "$here/digits.onnx" --output "$out/digits.engine" \
  --target auto --batches 1,8,64,360 --report "$out/report.json"
"$build/bin/engine-run" "$out/digits.engine" --inputs "$here/test_images.npz" \
  --outputs "$out/logits.npz"
# PyTorch gets 355 of 360 right.
"$python" "$here/accuracy.py" "$out/logits.npz" "$here/test_labels.npz" 0.98
