// Compares a result with the reference.
#pragma once
#include <cstdint>
#include <string>

#include "builder/tactics/accuracy.h"
#include "builder/verify/reference.h"

namespace kiln {

struct Comparison {
  bool passed = true;
  int64_t rows = 0;  // rows compared: the innermost axis is one row
  double max_abs_error = 0, max_rel_error = 0;
  double min_cosine = 1;  // over rows; 1 for rows of zeros that agree
  std::string worst;      // where and by how much it is worst; "" when nothing differs
};

// "element 3 is 1.5, expected 1 within 0.001"
std::string describe_element(size_t index, double got, double want, double allowed);

// Floats within the policy; NaN matches NaN, an infinity its like. Integers and bools bit for bit.
// REQUIRES: type.bytes() bytes each.
Comparison compare(const TensorType& type, const std::byte* got, const std::byte* want,
                   const AccuracyPolicy& policy);

// Of whole tensors, in f64. NaN and infinities are left out where both have them; 0 if only one
// has. 1 if both are zero. REQUIRES: equal shapes.
double cosine_of(const HostTensor& got, const HostTensor& want);

// Elements as doubles; 64-bit integers lose their low bits.
std::vector<double> to_f64(const TensorType& type, const std::byte* data);

}  // namespace kiln
