#!/usr/bin/env bash
# check_readme.sh PREFIX WORK_FOLDER: what the README shows works as written, with the package
# installed in PREFIX: the commands of the first engine, then the C++ program, built by the README's
# CMake lines and run on that engine.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=$1 work=$2/readme

# block HEADING LANGUAGE: the first code block in that language below that heading.
block() {
  awk -v heading="## $1" -v fence="\`\`\`$2" '
    /^## / { inside = ($0 == heading) }
    open && /^```$/ { exit }
    open { print }
    inside && $0 == fence { open = 1 }' "$root/README.md"
}

rm -rf "$work"
mkdir -p "$work/service"
ln -s "$root/apps" "$work/apps"
cd "$work"
block 'A first engine in six lines' sh | grep -v '^export PATH=' >first_engine.sh
[[ $(wc -l <first_engine.sh) -eq 5 ]] || { echo "check_readme: README's lines changed" >&2; exit 1; }
PATH="$prefix/bin:$PATH" bash -euo pipefail first_engine.sh >first_engine.log

block 'From C++' cpp >service/service.cc
{
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo 'project(readme LANGUAGES CXX)'
  block 'From C++' cmake
} >service/CMakeLists.txt
cmake -S service -B service/build -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' >/dev/null
cmake --build service/build
service/build/service >logits.txt
[[ $(wc -w <logits.txt) -eq 30 ]] || { echo "check_readme: not 30 logits" >&2; exit 1; }
