#include "formats/engine_file/plan_fields.h"

#include "formats/engine_file/check_plan.h"

namespace kiln::engine_file {

Result<> PlanFields::decode_text(const flatbuffers::String* from, std::string& to) {
  KILN_RETURN_IF_ERROR(spend(from));
  if (from != nullptr) to = from->str();
  return Ok();
}

Result<> PlanFields::decode_types(const Plan& from) {
  KILN_RETURN_IF_ERROR(spend(from.types()));
  for (size_t i = 0; i < count(from.types()); ++i) {
    const TensorType& type = *from.types()->Get(uint32_t(i));
    if (type.dtype() >= kDTypeCount) {
      return corrupt("type " + std::to_string(i) + ": dtype is " + std::to_string(type.dtype()) +
                     ", expected less than " + std::to_string(kDTypeCount));
    }
    // Types are used by number: a long one would cost its memory again at each use.
    if (count(type.shape()) > plan::kMostRank) {
      return corrupt("type " + std::to_string(i) + ": rank is " +
                     std::to_string(count(type.shape())) + ", expected at most " +
                     std::to_string(plan::kMostRank));
    }
    KILN_RETURN_IF_ERROR(spend(type.shape()));
    kiln::TensorType& decoded = types_.emplace_back();
    decoded.dtype = static_cast<DType>(type.dtype());
    if (type.shape() != nullptr) decoded.shape.assign(type.shape()->begin(), type.shape()->end());
  }
  return Ok();
}

Result<> PlanFields::decode_type(uint32_t number, kiln::TensorType& to) const {
  if (number >= types_.size()) {
    return corrupt("type number is " + std::to_string(number) + ", expected less than " +
                   std::to_string(types_.size()));
  }
  to = types_[number];
  return Ok();
}

}  // namespace kiln::engine_file
