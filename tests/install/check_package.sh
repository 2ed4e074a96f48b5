#!/usr/bin/env bash
# check_package.sh BUILD_FOLDER PYTHON: installs Kiln, builds service/ against the package, runs it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 python=$2
work=$build/install_test
prefix=$work/prefix
rm -rf "$prefix" "$work/model"
mkdir -p "$work/model"

fail() { echo "check_package: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" >/dev/null
cmake -S "$here/service" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/build"

# The lean runtime: libc (with libm and the loader), libstdc++ and its unwinder.
needed=$(readelf -d "$work/build/lean" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
unwanted=$(grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so' <<<"$needed" || true)
[[ -z "$unwanted" ]] || fail "a program with kiln::engine alone needs $unwanted"
"$work/build/lean" "$work/model/none.engine" || fail "the lean program failed"

# No protobuf or ONNX symbol can be linked to, so a service may bring its own.
foreign=$(nm -g --defined-only "$prefix"/lib*/libkiln_onnx.a "$prefix"/lib*/*/libkiln_onnx.a \
  2>/dev/null | awk '{ print $3 }' | grep -E '^_Z[A-Z]*N?K?(4onnx|6google)' | head -3 || true)
[[ -z "$foreign" ]] || fail "libkiln_onnx.a exports $foreign"

"$python" "$here/make_model.py" "$work/model/affine.onnx"
"$work/build/service" "$work/model/affine.onnx" "$work/model/affine.engine"

"$here/check_readme.sh" "$prefix" "$work"
