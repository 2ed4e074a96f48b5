// The constants that a kernel's shape and tiling give the text behind them.
#pragma once
#include <cstdint>
#include <ostream>
#include <string_view>

namespace kiln {

inline void write_number(std::ostream& text, std::string_view name, int64_t value) {
  text << "constexpr int " << name << " = " << value << ";\n";
}

inline void write_flag(std::ostream& text, std::string_view name, bool value) {
  text << "constexpr bool " << name << " = " << (value ? "true" : "false") << ";\n";
}

}  // namespace kiln
