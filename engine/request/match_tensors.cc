#include "engine/request/match_tensors.h"

#include <algorithm>
#include <string>

namespace kiln {
namespace {

std::string list_names(const std::vector<plan::IoTensor>& wanted) {
  std::string text;
  for (const plan::IoTensor& tensor : wanted) {
    text += (text.empty() ? "'" : ", '") + tensor.name + "'";
  }
  return text.empty() ? "none" : text;
}

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Result<std::vector<const Tensor*>> match_tensors(std::span<const Tensor> given,
                                                 const std::vector<plan::IoTensor>& wanted,
                                                 const char* kind) {
  const std::string plural = std::string(kind) + "s";
  if (given.size() != wanted.size()) {
    return invalid("got " + std::to_string(given.size()) + " " + plural + ", expected " +
                   std::to_string(wanted.size()) + ": " + list_names(wanted));
  }
  std::vector<const Tensor*> matched(wanted.size(), nullptr);
  for (size_t i = 0; i < given.size(); ++i) {
    size_t at = i;
    if (!given[i].name.empty()) {
      const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const auto& tensor) {
        return tensor.name == given[i].name;
      });
      if (found == wanted.end()) {
        return invalid("has no " + std::string(kind) + " '" + given[i].name + "', its " + plural +
                       " are " + list_names(wanted));
      }
      at = static_cast<size_t>(found - wanted.begin());
    }
    if (matched[at] != nullptr) {
      return invalid(std::string(kind) + " '" + wanted[at].name +
                     "' is given twice; give all names or none");
    }
    if (static_cast<uint8_t>(given[i].type.dtype) >= kDTypeCount) {
      return invalid(std::string(kind) + " '" + wanted[at].name + "' has the dtype number " +
                     std::to_string(static_cast<int>(given[i].type.dtype)) +
                     ", which is none of DType's");
    }
    matched[at] = &given[i];
  }
  return matched;
}

}  // namespace kiln
