#!/usr/bin/env bash
# Installs what Kiln's build needs and is missing: Debian/Ubuntu packages, a Python environment
# for the oracles of the tests, and ONNX's C++ library, which no distribution packages in a
# current version. Does nothing, quickly, when all is there.
#
#   third_party/bootstrap.sh                 install for building and testing
#   third_party/bootstrap.sh --dev           also the formatter, the linter and the fuzzer
#   third_party/bootstrap.sh --onnx-prefix   print where ONNX's library belongs, do nothing
#   third_party/bootstrap.sh --python        print where the Python interpreter belongs
#
# KILN_DEPS_DIR (default ~/.cache/kiln) holds what apt does not; several checkouts share it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirements="$here/python_requirements.txt"
deps="${KILN_DEPS_DIR:-${HOME:-/root}/.cache/kiln}"

build_packages=(g++ cmake ninja-build ccache python3 python3-venv
  libprotobuf-dev protobuf-compiler libflatbuffers-dev flatbuffers-compiler libspdlog-dev
  libcli11-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev libdnnl-dev libgtest-dev)
dev_packages=(clang-19 clang-format-19 clang-tidy-19 binutils)

say() { echo "bootstrap: $*"; }
die() { echo "bootstrap: error: $*" >&2; exit 1; }

requirement_version() { sed -n "s/^$1==\([^ ;\\]*\).*/\1/p" "$requirements"; }
python_environment() { echo "$deps/python-$(cksum <"$requirements" | cut -d' ' -f1)"; }

# A library built by one compiler or protobuf version does not serve another.
onnx_prefix() {
  echo "$deps/onnx-$(requirement_version onnx)-$(uname -m)-g++$(g++ -dumpfullversion)-$(
    protoc --version | sed 's/.* /protobuf/')"
}

install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *' installed' ]] ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return
  command -v apt-get >/dev/null || die "missing packages, and no apt-get: ${missing[*]}"
  local as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

build_python_environment() {
  local target; target=$(python_environment)
  [[ -e "$target/.complete" ]] && return
  say "creating the Python environment $target"
  rm -rf "$target"
  python3 -m venv "$target"
  "$target/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
    --require-hashes -r "$requirements"
  touch "$target/.complete"
}

build_onnx() {
  local target version python
  target=$(onnx_prefix)
  [[ -e "$target/.complete" ]] && return
  version=$(requirement_version onnx)
  python=$(python_environment)/bin
  work=$(mktemp -d "$deps/build-onnx.XXXXXX")
  trap 'rm -rf "$work"' EXIT  # not local: read when the shell exits
  say "fetching the source distribution of onnx $version"
  sed -n '/^onnx==/,/[^\\]$/p' "$requirements" >"$work/requirement.txt"
  "$python/pip" download --quiet --disable-pip-version-check --no-deps --no-binary onnx \
    --require-hashes -r "$work/requirement.txt" -d "$work"
  tar -xzf "$work/onnx-$version.tar.gz" -C "$work"
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
  say "building ONNX's C++ library (about 4 minutes on two cores)"
  "$python/cmake" -S "$work/onnx-$version" -B "$work/build" -G Ninja -Wno-dev \
    --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_STANDARD=17 \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$target" \
    -DCMAKE_INSTALL_LIBDIR=lib -DPython3_EXECUTABLE="$python/python3" \
    -DONNX_ML=ON -DONNX_NAMESPACE=onnx -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF \
    -DONNX_BUILD_TESTS=OFF -DONNX_BUILD_PYTHON=OFF -DONNX_GEN_PB_TYPE_STUBS=OFF
  rm -rf "$target"
  NINJA_STATUS='[onnx %f/%t, %e s] ' "$python/cmake" --build "$work/build"
  "$python/cmake" --install "$work/build" >/dev/null
  touch "$target/.complete"
  say "installed $target"
}

main() {
  local packages=("${build_packages[@]}")
  case "${1:-}" in
    '') ;;
    --dev) packages+=("${dev_packages[@]}") ;;
    --onnx-prefix) onnx_prefix; return ;;
    --python) echo "$(python_environment)/bin/python3"; return ;;
    *) die "unknown argument '$1'; known are --dev, --onnx-prefix and --python" ;;
  esac
  mkdir -p "$deps"
  # Two checkouts may bootstrap at once.
  exec 9>"$deps/.lock"
  flock 9
  install_packages "${packages[@]}"
  build_python_environment
  build_onnx
}
main "$@"
