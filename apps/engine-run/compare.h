// Comparing an engine's outputs with reference arrays.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/engine-run/named_array.h"

namespace kiln::run {

struct Tolerance {
  // An element of a float output is right if |found - expected| <= atol + rtol * |expected|, if
  // both are NaN, or if both are the same infinity.
  bool elements = true;
  double rtol = 1e-3, atol = 1e-4;
  // When set, every row's cosine must be at least this.
  std::optional<double> cosine;
};

// A row is a slice along axis 0; arrays of rank 0 and 1 are one row.
struct Comparison {
  std::string name;
  TensorType type;
  int64_t elements = 0, wrong_elements = 0;
  // Infinite where NaN or infinity stand on one side only, or as different infinities; the relative
  // one too where 0 was expected and anything else was found.
  double max_abs_error = 0, max_rel_error = 0;
  // The element furthest out of tolerance, wrong or not.
  Shape worst_index;
  double worst_found = 0, worst_expected = 0;
  // Of positions that are finite on both sides; 1 for two rows of zeros, 0 for one, -1 where NaN or
  // infinity stand at different places.
  double min_row_cosine = 1;
  int64_t worst_row = 0;
  bool passed = true;
};

// Integers and bools must be equal; floats are compared in f64, whatever their types.
// kInvalidArgument if the shapes differ.
Result<Comparison> compare(const NamedArray& found, const NamedArray& expected,
                           const Tolerance& tolerance);

// Every output with the reference of its name. kInvalidArgument lists outputs without one;
// references without an output are left aside.
Result<std::vector<Comparison>> compare_all(std::span<const NamedArray> found,
                                            std::span<const NamedArray> expected,
                                            const Tolerance& tolerance);

}  // namespace kiln::run
