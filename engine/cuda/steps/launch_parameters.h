// What a launch of a kernel of ours passes on: addresses, then tensor maps made from addresses.
#pragma once
#include <vector>

#include "engine/cuda/device.h"
#include "engine/steps/spaces.h"
#include "formats/engine_file/plan.h"

namespace kiln::cuda {

class LaunchParameters {
 public:
  // kDevice if the driver refuses a tensor map, kUnsupported if it has none.
  static Result<LaunchParameters> make(const Device& device, const plan::KernelLaunch& launch,
                                       const Spaces& spaces);

  // As the driver wants them, valid while this object is.
  void** get();

 private:
  std::vector<const void*> addresses_;
  std::vector<CUtensorMap> maps_;
  std::vector<void*> pointers_;
};

// kCorruptData if the kernel has other parameters than the launch brings, of which the driver would
// read as many as the kernel has. Drivers before 12.4 do not tell.
Result<> check_parameters(const DriverApi& driver, CUfunction function,
                          const plan::KernelLaunch& launch);

}  // namespace kiln::cuda
