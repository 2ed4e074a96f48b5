// Loop kernels of the kinds that models have, small enough to be run thread by thread on the host.
#pragma once
#include <string>
#include <vector>

#include "tests/builder/codegen/body.h"

namespace kiln::codegen {

struct KernelCase {
  std::string name;
  Body body;
  double tolerance = 1e-5;  // relative, between executions in other orders
};

std::vector<KernelCase> kernel_cases();

}  // namespace kiln::codegen
