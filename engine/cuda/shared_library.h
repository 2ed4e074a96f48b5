// SharedLibrary: a library opened by name.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "formats/result.h"

namespace kiln::cuda {

class SharedLibrary {
 public:
  // The first of `names` that the loader finds. kUnsupported names all of them and the reason.
  static Result<SharedLibrary> open(std::span<const char* const> names);

  // Null if it has no such symbol.
  void* find(const char* symbol) const;
  // Sets `function`; kVersionMismatch names library and symbol.
  template <class Function>
  Result<> bind(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(find(symbol));
    if (function != nullptr) return Ok();
    return Error{ErrorCode::kVersionMismatch,
                 "'" + name_ + "' has no function '" + symbol + "'; install a newer version"};
  }
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<void> handle_;
  std::string name_;
};

}  // namespace kiln::cuda
