// Quantities as people read them.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::report {

// "512 B", "1.5 KB", "25.6 MB": powers of 1000.
std::string bytes_text(uint64_t bytes);
// "120.5 us", "3.21 ms".
std::string time_text(double us);

}  // namespace kiln::report
