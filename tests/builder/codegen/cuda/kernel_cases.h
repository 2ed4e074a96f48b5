// Loop kernels of the kinds that models have, small enough to be run thread by thread on the host.
#pragma once
#include <string>
#include <vector>

#include "builder/codegen/cuda/schedule.h"
#include "tests/builder/codegen/body.h"

namespace kiln::codegen {

// What is worth timing, and what is not: the schedule that takes any kernel, the first that
// streams.
std::vector<CudaSchedule> all_schedules(const loop::LoopKernel& kernel);

struct KernelCase {
  std::string name;
  Body body;
  double tolerance = 1e-5;  // relative, between executions in other orders
};

std::vector<KernelCase> kernel_cases();

}  // namespace kiln::codegen
