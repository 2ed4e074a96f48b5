// Quantities as people read them.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::report {

// "512 B", "1.5 KB", "25.6 MB": powers of 1000.
std::string bytes_text(uint64_t bytes);
// "120.5 us", "3.21 ms".
std::string time_text(double us);
// A 64-bit hash as 16 hexadecimal digits.
std::string hash_text(uint64_t hash);

}  // namespace kiln::report
