#include "engine/load/check_origin.h"

#include <string>

namespace kiln {
Result<> check_origin(const plan::Origin& origin, const LoadOptions& options) {
  if (origin.world_size != 1) {
    return Error{ErrorCode::kUnsupported, "was built for rank " + std::to_string(origin.rank) +
                                              " of " + std::to_string(origin.world_size) +
                                              ", this runtime runs a single one"};
  }
  if (!origin.verified && !options.allow_unverified) {
    return Error{ErrorCode::kVerification,
                 "was not verified by its build (--no-verify, or built away from its device); run "
                 "'engine-build --onnx MODEL --verify-engine FILE' on the device, or take the risk "
                 "with LoadOptions::allow_unverified"};
  }
  return Ok();
}

}  // namespace kiln
