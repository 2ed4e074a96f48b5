#include "formats/tensor_type.h"

#include <array>
#include <charconv>

namespace kiln {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
  char family;  // f, i (signed), u, b
};

constexpr std::array<DTypeRow, kDTypeCount> kRows = {{
    {"f32", 32, 'f'},     {"f64", 64, 'f'},       {"f16", 16, 'f'},   {"bf16", 16, 'f'},
    {"f8e4m3fn", 8, 'f'}, {"f8e4m3fnuz", 8, 'f'}, {"f8e5m2", 8, 'f'}, {"f8e5m2fnuz", 8, 'f'},
    {"i8", 8, 'i'},       {"i16", 16, 'i'},       {"i32", 32, 'i'},   {"i64", 64, 'i'},
    {"u8", 8, 'u'},       {"u16", 16, 'u'},       {"u32", 32, 'u'},   {"u64", 64, 'u'},
    {"bool", 8, 'b'},     {"i4", 4, 'i'},         {"u4", 4, 'u'},
}};

const DTypeRow& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

int bits_of(DType dtype) { return row(dtype).bits; }
std::string_view to_string(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_float(DType dtype) { return row(dtype).family == 'f'; }
bool is_integer(DType dtype) { return row(dtype).family == 'i' || row(dtype).family == 'u'; }
bool is_signed_integer(DType dtype) { return row(dtype).family == 'i'; }

std::optional<int64_t> checked_element_count(const Shape& shape) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (count > kLimit / extent) return std::nullopt;
    count *= extent;
  }
  return empty ? 0 : count;
}

int64_t element_count(const Shape& shape) { return checked_element_count(shape).value(); }

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string to_string(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (int64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

int64_t TensorType::bytes() const { return (elements() * bits_of(dtype) + 7) / 8; }

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.dtype)) + "[" +
         (type.shape.empty() ? std::string() : to_string(type.shape)) + "]";
}

std::optional<TensorType> parse_tensor_type(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  const auto dtype = parse_dtype(text.substr(0, open));
  if (!dtype) return std::nullopt;
  TensorType type{*dtype, {}};
  const char* at = text.data() + open + 1;
  const char* end = text.data() + text.size() - 1;
  while (at != end) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    type.shape.push_back(extent);
    at = next;
    if (at == end) break;
    if (*at != 'x' || ++at == end) return std::nullopt;
  }
  if (!checked_element_count(type.shape)) return std::nullopt;
  return type;
}

}  // namespace kiln
