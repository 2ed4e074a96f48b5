// Engines from plans by hand, and calls of them.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/fake_kernels.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/environment.h"
#include "tests/scratch_folder.h"

namespace kiln::testing {

// Loads a plan through a file, as a user would; the file is removed again at once.
inline Result<Engine> load_plan(const plan::Plan& plan,
                                LoadOptions options = {.host_kernels = fake_kernels()}) {
  const ScratchFolder folder;
  KILN_RETURN_IF_ERROR(write_engine(plan, folder / "m.engine"));
  return Engine::load(folder / "m.engine", options);
}

inline Tensor tensor(const std::string& name, const Shape& shape, std::vector<float>& values) {
  return {name, {DType::kF32, shape}, values.data()};
}

// Calls an engine with one input and one output of equal shape, matched by position.
inline Result<> infer_same_shape(const Engine& engine, const Shape& shape, std::vector<float>& x,
                                 std::vector<float>& y) {
  const Tensor in = tensor("", shape, x), out = tensor("", shape, y);
  return engine.infer({&in, 1}, {&out, 1});
}

// x[i] = seed + i and what affine_plan makes of it.
inline std::vector<float> ramp(int64_t rows, float seed) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = seed + static_cast<float>(i);
  return x;
}
inline std::vector<float> affine_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = 16 * x[i] + static_cast<float>(i % 4 + 1);
  return y;
}

}  // namespace kiln::testing
