// The header of a .npy file: a Python dict that tells dtype, order and shape.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::npy {

struct Header {
  TensorType type;
  bool raw = false;            // single bytes of no known type
  bool fortran_order = false;  // the first axis is the fastest
  size_t bytes = 0;            // of the header: the data follows
};

bool has_npy_magic(std::span<const std::byte> file);
// Checks that the data is as long as dtype and shape say.
Result<Header> parse_header(std::span<const std::byte> file);
// Magic and header for dense row-major data, padded to 64 bytes. 4-bit types are written as 8-bit.
std::string print_header(const TensorType& type);

}  // namespace kiln::npy
