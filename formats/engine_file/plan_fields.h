// What decoding a plan's parts has in common: texts, types, and a budget of bytes.
#pragma once
#include <cstdint>
#include <string>
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

// The verifier holds a vector of structs to the buffer's bounds and not to the structs' alignment.
template <class T>
Result<> check_alignment(const flatbuffers::Vector<const T*>* vector) {
  if (count(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(T) == 0) {
    return Ok();
  }
  return corrupt("a list of structs starts off their alignment of " + std::to_string(alignof(T)) +
                 " bytes");
}

// Fields of a verified buffer. A writer never lets two fields share bytes, so all that is decoded
// is no larger than the section; the budget holds hostile files, in which many tables point at one
// long vector, to the same.
class PlanFields {
 public:
  explicit PlanFields(size_t section_bytes) : budget_(section_bytes) {}

  // Takes the vector's own bytes from the budget.
  template <class V>
  Result<> spend(const V* vector) {
    return spend_bytes(count(vector) * sizeof(typename V::value_type));
  }
  Result<> spend_bytes(size_t bytes) {
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
