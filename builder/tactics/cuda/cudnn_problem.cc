#include "builder/tactics/cuda/cudnn_problem.h"

#include <sstream>

namespace kiln {
namespace {

// One word for each value; lists in brackets, what is absent as "-".
class TextWriter {
 public:
  std::string take() { return std::move(text_).str(); }

  template <class... Values>
  void line(const char* what, const Values&... values) {
    text_ << what;
    (put(values), ...);
    text_ << '\n';
  }

 private:
  void put(int64_t value) { text_ << ' ' << value; }
  void put(bool value) { text_ << ' ' << value; }
  void put(double value) { text_ << ' ' << std::hexfloat << value; }
  void put(DType value) { text_ << ' ' << to_string(value); }
  void put(const Shape& values) {
    text_ << " [";
    for (int64_t value : values) put(value);
    text_ << ']';
  }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value) {
      put(*value);
    } else {
      text_ << " -";
    }
  }
  void put(float value) { put(static_cast<double>(value)); }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void put(Enum value) {
    put(static_cast<int64_t>(value));
  }

  std::ostringstream text_;
};

// The bindings name every member, so that none can be forgotten here.
struct OperationLine {
  TextWriter& to;

  void operator()(const CudnnConvolution& o) const {
    const auto& [x, w, y, strides, dilations, begin, end, transposed] = o;
    to.line("convolution", x, w, y, strides, dilations, begin, end, transposed);
  }
  void operator()(const CudnnPointwise& o) const {
    const auto& [mode, x, b, y, low, high, condition, axis, arithmetic] = o;
    to.line("pointwise", mode, x, b, y, low, high, condition, axis, arithmetic);
  }
  void operator()(const CudnnMatmul& o) const {
    const auto& [a, b, c] = o;
    to.line("matmul", a, b, c);
  }
  void operator()(const CudnnReduction& o) const {
    const auto& [op, x, y] = o;
    to.line("reduction", op, x, y);
  }
};

}  // namespace

std::string to_text(const CudnnProblem& problem) {
  TextWriter writer;
  for (const CudnnTensor& tensor : problem.tensors) {
    const auto& [dtype, dims, strides, is_virtual, by_value] = tensor;
    writer.line("tensor", dtype, dims, strides, is_virtual, by_value);
  }
  for (const CudnnOperation& operation : problem.operations) {
    std::visit(OperationLine{writer}, operation);
  }
  return writer.take();
}

}  // namespace kiln
