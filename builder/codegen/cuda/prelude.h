// The text that every generated kernel is compiled behind, from device/: what only a GPU can do,
// then plain C++ over it. All of it, always: reading it takes the compiler 5 ms.
#pragma once
#include <string>
#include <string_view>

namespace kiln::codegen {

std::string_view device_primitives();
std::string_view device_functions();
std::string device_prelude();  // both

}  // namespace kiln::codegen
