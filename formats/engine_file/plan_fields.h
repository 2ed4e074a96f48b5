// What decoding a plan's parts has in common: texts, types, and a budget of bytes.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/engine_file/plan_generated.h"
#include "formats/result.h"

namespace kiln::engine_file {

inline Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

// nullptr is an empty vector.
template <class V>
size_t count(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Fields of a verified buffer. A writer never lets two fields share bytes, so all that is decoded
// is no larger than the section; the budget holds hostile files, in which many tables point at one
// long vector, to the same.
class PlanFields {
 public:
  explicit PlanFields(size_t section_bytes) : budget_(section_bytes) {}

  // Takes the vector's own bytes from the budget, and holds its elements to their alignment, which
  // the verifier does not. To be asked for each vector ahead of its first element.
  template <class T>
  Result<> spend(const flatbuffers::Vector<T>* vector) {
    if (count(vector) == 0) return Ok();
    constexpr size_t kAlignment = alignof(std::remove_pointer_t<T>);
    if (reinterpret_cast<uintptr_t>(vector->Data()) % kAlignment != 0) {
      return corrupt("a list starts off its elements' alignment of " + std::to_string(kAlignment) +
                     " bytes");
    }
    const size_t bytes = vector->size() * flatbuffers::IndirectHelper<T>::element_stride;
    if (bytes > budget_) return corrupt("several fields share the same bytes");
    budget_ -= bytes;
    return Ok();
  }

  Result<> decode_text(const flatbuffers::String* from, std::string& to);
  // The table that decode_type() looks numbers up in.
  Result<> decode_types(const Plan& from);
  Result<> decode_type(uint32_t number, kiln::TensorType& to) const;

 private:
  size_t budget_;
  std::vector<kiln::TensorType> types_;
};

// decode_step.cc
Result<> decode_step(PlanFields& fields, const Step& from, plan::Step& to);

}  // namespace kiln::engine_file
