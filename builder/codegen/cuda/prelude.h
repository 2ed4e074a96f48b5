// The text that every generated kernel is compiled behind: device_primitives.cuh, then numbers.cuh.
#pragma once
#include <string>
#include <string_view>

namespace kiln::codegen {

std::string_view device_primitives();
std::string_view device_numbers();
std::string device_prelude();  // both

}  // namespace kiln::codegen
