#!/usr/bin/env bash
# What needs a GPU: builds nothing, runs prebuilt programs. Where there is no GPU it says so and does
# nothing.
#
#   tests/gpu_check.sh BIN_FOLDER CASES_FOLDER OUTPUT_FOLDER TREE_HASH [TIMING_CACHE] [--steps a,b]
#
# Steps, all by default, in this order:
#   gpu         kiln_gpu_test: the runtime on the GPU
#   cases       kiln_conformance on the semantics cases
#   models      the small models and three trained ones against ONNX Runtime, f32, f16 and bf16
#   full        the same for the full-size models, exported here
#   bench       the comparison with PyTorch
#   cross       builds without the GPU, from the timing cache of a build on it
#   sanitizers  compute-sanitizer's four tools on engines of a convolutional and an attention model,
#               of rows so long that several blocks share one, and of products of many rows
#
# python3 needs numpy, onnx, onnxruntime, torch, torchvision and transformers. Set KILN_EXTRA_MODELS
# to a folder of .onnx files to have their memory compared with its plan as well.
set -uo pipefail
steps=gpu,cases,models,full,bench,cross,sanitizers
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --steps) steps=${2:?steps}; shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
set -- "${arguments[@]}"
bin=$(realpath "${1:?programs}") cases=$(realpath "${2:?cases}") out=$(realpath "${3:?output}")
tree=${4:?tree hash} cache=${5:+$(realpath "$5")}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! nvidia-smi > /dev/null 2>&1; then
  echo "skipped: no GPU here"
  exit 0
fi
note() {  # also from background jobs
  echo "::: $1: $([ "$2" = 0 ] && echo passed || echo "FAILED ($2)")"
  [ "$2" = 0 ] || touch "$work/failed"
}
wanted() { case ",$steps," in *",$1,"*) return 0 ;; esac; return 1; }

# Alone on the GPU: it measures memory. What gives the GPU's context back has a process of its own.
check_gpu() {
  timeout 300 "$bin/kiln_gpu_test" --gtest_filter='-ReleasedContext.*' > "$out/gpu.txt" 2>&1
  note "tests on the GPU" $?
  timeout 60 "$bin/kiln_gpu_test" --gtest_filter='ReleasedContext.*' > "$out/released.txt" 2>&1
  note "a context given back" $?
  grep -hE '^\[ +FAILED|planned|made to fail|^enqueue' "$out/gpu.txt" "$out/released.txt" | cut -c1-300
}

check_cases() {
  printf "%s\n" "$cases"/semantics/*/ |
    xargs -P 8 -n 8 "$bin/kiln_conformance" --stage engine --limit-seconds 100 > "$out/semantics.txt"
  note "semantics cases" $?
  awk '/cases:/ {n += $1; p += $3} END {print n " semantics cases, " p " passed"}' "$out/semantics.txt"
}

# check_some NAME OPTION...: many of these models share shapes, and so a timing cache.
check_some() {
  local name=$1
  python3 "$here/models/check.py" "$bin" --target cuda --option=--timing-cache="$work/models.json" \
    "${@:2}" > "$out/$name.txt" 2>&1
  note "$name" $?
  echo "$name: $(grep -E '^failed' "$out/$name.txt" | cut -c1-300) $(tail -n 1 "$out/$name.txt")"
}

# Many at once: what is fastest does not matter here, so they may disturb each other.
check_models() {
  local kind
  for kind in 'bert*' 'gpt2*' 't5*' 'vit*' 'resnet*' 'mobilenet*' 'unet*' 'convnext*' \
    'swin*' 'densenet*' 'dependent*'; do
    check_some "small-${kind%?}" --max-batch 4 --only "$kind" &
  done
  wait
  for kind in 'bert*' 'gpt2*' 't5*' 'vit*' 'resnet*' 'mobilenet*' 'unet*' 'convnext*' \
    'swin*' 'densenet*'; do
    check_some "small-${kind%?}-half" --max-batch 2 --half --only "${kind}_torchscript" &
  done
  check_some trained --set real --only 'rapidocr*' &
  check_some trained-half --set real --half --only 'rapidocr*' &
  wait
}

check_full_model() {
  local name=$1 folder="$work/full-$1"
  python3 "$here/models/export.py" "$folder" --size full --only "$name" > "$out/export-$name.txt" 2>&1
  local exported=$?
  if [ $exported != 0 ]; then
    note "export of $name: $(tail -n 1 "$out/export-$name.txt" | cut -c1-200)" $exported
    return
  fi
  check_some "full-$name" --full "$folder"
  check_some "full-$name-half" --full "$folder" --half --only '*_torchscript'
  rm -r "$folder"
}

check_full() {
  local name
  for name in mobilenet-v3-small resnet50 unet minilm bert-base gpt2 t5-encoder vit-b16 vit-b16-hf; do
    check_full_model $name &
  done
  wait
}

compare_with_pytorch() {
  [ -n "$cache" ] && mkdir -p "$work/bench" && cp "$cache" "$work/bench/timing.json"
  python3 "$here/bench/compare_torch.py" "$bin" "$work/bench" --modes reduce-overhead --rounds 2 \
    --tree "$tree" --json "$out/rows.json"
  note "comparison with PyTorch" $?
  cp "$work"/bench/*.txt "$out/"
}

check_cross() {
  timeout 300 bash "$here/cross_build_check.sh" "$bin" > "$out/cross.txt" 2>&1
  note "builds without the GPU" $?
  tail -n 5 "$out/cross.txt" | cut -c1-300
}

# synccheck tracks few barriers by default and breaks the context when a library's kernel has more.
# Where a tool finds fault, it goes over our own kernels alone, which decide: a library's fault is
# told, and cannot hide one of ours. initcheck does not see bulk stores, which libraries and our kernel
# for many rows write by, so there an engine without them decides.
sanitize() {
  local name=$1 tool
  for tool in memcheck racecheck initcheck synccheck; do
    if run_sanitizer $tool "$name" all; then
      note "$tool, $name" 0
      continue
    fi
    echo "::: $tool, $name: errors, see $tool-$name-all.txt"
    if [ $tool = initcheck ]; then
      build_sanitized "$name" own \
        --disable-tactic cublaslt cudnn grouped many-rows pointwise-conv
      run_sanitizer $tool "$name-own" own
    else
      run_sanitizer $tool "$name" own --kernel-name kernel_substring=kiln_
    fi
    note "$tool, $name, our kernels alone" $?
  done
}
# Calls that the driver refuses are errors of ours by value, and one is made in order to be refused:
# asking for a parameter that a kernel must not have.
run_sanitizer() {
  local tool=$1 name=$2 which=$3
  shift 3
  [ "$tool" != memcheck ] || set -- --report-api-errors no "$@"
  timeout 90 compute-sanitizer --tool "$tool" --num-cuda-barriers 65536 --error-exitcode 9 "$@" \
    "$bin/engine-run" "$work/$name.engine" --batch 3 > "$out/$tool-$name-$which.txt" 2>&1
}

build_sanitized() {
  local name=$1 kind=$2
  shift 2
  "$bin/engine-build" --onnx "$work/$name.onnx" --output "$work/$name${kind:+-$kind}.engine" \
    --target cuda --fp16 --batches 4 --quiet "$@"
  note "building $name${kind:+, $kind}" $?
}

# Softmax and normalisation over rows of 65,536.
write_long_rows() {
  python3 - "$1" << 'END'
import sys
from onnx import TensorProto, helper

x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 65536]) for n in "xy")
scale = helper.make_tensor("scale", TensorProto.FLOAT, [65536], [1.5] * 65536)
nodes = [helper.make_node("Softmax", ["x"], ["shares"], "softmax", axis=-1),
         helper.make_node("Add", ["x", "shares"], ["moved"], "add"),
         helper.make_node("LayerNormalization", ["moved", "scale"], ["y"], "norm", axis=-1)]
graph = helper.make_graph(nodes, "rows", [x], [y], [scale])
opset = [helper.make_opsetid("", 17)]
with open(sys.argv[1], "wb") as file:
    file.write(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())
END
}

# Products of 200 rows a batch: a gated linear unit, then one of f8e4m3fn.
write_products() {
  python3 - "$1" << 'END'
import sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper

K, N = 96, 160
random = np.random.default_rng(1)
constant = lambda name, *shape: numpy_helper.from_array(
    (random.standard_normal(shape) / 8).astype(np.float32), name)
x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 200, c])
        for n, c in (("x", K), ("y", K)))
scale = lambda name: numpy_helper.from_array(np.float32(0.02), name)
zero = helper.make_tensor("zero", TensorProto.FLOAT8E4M3FN, [], b"\0", raw=True)
codes = lambda value, name: [
    helper.make_node("QuantizeLinear", [value, "s", "zero"], [f"{name}_q"], f"{name}_q"),
    helper.make_node("DequantizeLinear", [f"{name}_q", "s", "zero"], [name], name)]
nodes = [helper.make_node("MatMul", ["x", "gate_up"], ["both"], "gate_up"),
         helper.make_node("Split", ["both"], ["gate", "up"], "halves", axis=-1, num_outputs=2),
         helper.make_node("Sigmoid", ["gate"], ["sigmoid"], "sigmoid"),
         helper.make_node("Mul", ["gate", "sigmoid"], ["silu"], "silu"),
         helper.make_node("Mul", ["silu", "up"], ["hidden"], "hidden"),
         *codes("hidden", "rounded"), *codes("down", "weights"),
         helper.make_node("MatMul", ["rounded", "weights"], ["y"], "down")]
graph = helper.make_graph(nodes, "products", [x], [y], [
    constant("gate_up", K, 2 * N), constant("down", N, K), scale("s"), zero])
opset = [helper.make_opsetid("", 19)]
with open(sys.argv[1], "wb") as file:
    file.write(helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString())
END
}

check_sanitizers() {
  local name
  write_long_rows "$work/rows.onnx"
  write_products "$work/products.onnx"
  cp "$here/models/tiny/bert_torchscript.onnx" "$work/bert.onnx"
  cp "$here/../apps/demo/digits.onnx" "$work/digits.onnx"
  for name in digits bert rows; do
    build_sanitized $name ""
    sanitize $name &
  done
  # So that the kernel for many rows runs, fast or not.
  build_sanitized products "" --disable-tactic cublaslt few-rows grouped
  sanitize products &
  wait
}

if wanted gpu; then check_gpu; fi
# Cases and models before the clock: a wrong engine's speed is of no interest.
if wanted cases; then check_cases; fi
if wanted models; then check_models; fi
if wanted full; then check_full; fi
if wanted bench; then compare_with_pytorch; fi
if wanted cross; then check_cross; fi
if wanted sanitizers; then check_sanitizers; fi
[ ! -e "$work/failed" ]
