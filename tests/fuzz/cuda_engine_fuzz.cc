// Any bytes as an engine for target cuda, on fakes of the driver and the libraries.
#include "tests/engine/cuda/every_step_plan.h"
#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/engine/cuda/fake_cudnn.h"
#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/cuda/wrapped_libraries.h"
#include "tests/fuzz/engine_file.h"

using namespace kiln::testing;

namespace {

struct Fakes {
  Fakes() {
    const auto libraries = FakeDriver::instance().libraries();
    libraries->cublaslt_api = cublaslt.api();
    libraries->cudnn_api = cudnn.api();
    wrapped = std::make_shared<WrappedLibraries>(libraries);
  }
  FakeCublasLt cublaslt;
  kiln::cuda::FakeCudnn cudnn;
  std::shared_ptr<WrappedLibraries> wrapped;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Fakes fakes;
  fakes.wrapped->fail_call(2'000, WrappedLibraries::Failure::kLaunchFailed);  // ends loops
  fakes.cudnn.executed.clear();
  kiln::LoadOptions options{.host_kernels = fake_kernels()};
  options.cuda_libraries = fakes.wrapped;
  const auto engine = load_resealed(data, size, every_step_plan({1, 2}), options);
  if (engine) run_first_point(*engine);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return mutate_section(data, size, max_size, seed, every_step_plan({1, 2}));
}
