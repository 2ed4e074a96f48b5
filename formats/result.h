// Result<T> carries a value or an Error. No exception crosses a room's wall.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace kiln {

enum class ErrorCode : uint8_t {
  kInvalidArgument,  // the caller broke a documented precondition
  kUnsupported,      // valid input that this build or device cannot handle
  kCorruptData,      // a file does not parse or fails its checksum
  kVersionMismatch,  // a file or plugin was made for another version
  kIo,
  kOutOfMemory,
  kDevice,        // the GPU runtime reported a failure
  kVerification,  // an engine or tactic disagrees with the reference
  kInternal,      // a bug here; the message asks for a report
};

// "invalid argument", "unsupported", ...
constexpr const char* to_string(ErrorCode code) {
  constexpr const char* kNames[] = {"invalid argument", "unsupported",  "corrupt data",
                                    "version mismatch", "io",           "out of memory",
                                    "device",           "verification", "internal"};
  return kNames[static_cast<size_t>(code)];
}

// Messages are lower case without a full stop; they name the thing, say what was found and what
// was expected, and what to do about it.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // Prepends where it happened; the outermost frame ends up first.
  Error context(const std::string& where) && {
    message = where + ": " + message;
    return std::move(*this);
  }
};

template <class T = std::monostate>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

inline Result<> Ok() { return std::monostate{}; }

}  // namespace kiln

// Returns the error of a Result<> expression from the enclosing function.
#define KILN_RETURN_IF_ERROR(expression)                            \
  do {                                                              \
    auto kiln_result_ = (expression);                               \
    if (!kiln_result_.ok()) return std::move(kiln_result_).error(); \
  } while (false)

#define KILN_CONCAT_INNER_(a, b) a##b
#define KILN_CONCAT_(a, b) KILN_CONCAT_INNER_(a, b)

// KILN_ASSIGN_OR_RETURN(auto x, f()); declares x as f()'s value or returns its error.
#define KILN_ASSIGN_OR_RETURN(target, expression) \
  KILN_ASSIGN_OR_RETURN_IMPL_(KILN_CONCAT_(kiln_result_, __LINE__), target, expression)
#define KILN_ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return std::move(result).error();           \
  target = std::move(result).value()
