#include "formats/npy/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace kiln::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostRank = 64;  // NumPy's own limit

struct DTypeRow {
  std::string_view descr;
  DType dtype;
};
// What is written for a dtype is its first row.
constexpr std::array kDTypes = {
    DTypeRow{"<f4", DType::kF32},
    DTypeRow{"<f8", DType::kF64},
    DTypeRow{"<f2", DType::kF16},
    DTypeRow{"<V2", DType::kBF16},  // ml_dtypes' bfloat16; NumPy's own f16 is f2
    DTypeRow{"|V2", DType::kBF16},
    DTypeRow{"|V1", DType::kF8E4M3FN},
    DTypeRow{"|V1", DType::kF8E4M3FNUZ},
    DTypeRow{"|V1", DType::kF8E5M2},
    DTypeRow{"|V1", DType::kF8E5M2FNUZ},
    DTypeRow{"|i1", DType::kI8},
    DTypeRow{"<i2", DType::kI16},
    DTypeRow{"<i4", DType::kI32},
    DTypeRow{"<i8", DType::kI64},
    DTypeRow{"|u1", DType::kU8},
    DTypeRow{"<u2", DType::kU16},
    DTypeRow{"<u4", DType::kU32},
    DTypeRow{"<u8", DType::kU64},
    DTypeRow{"|b1", DType::kBool},
    DTypeRow{"|i1", DType::kI4},
    DTypeRow{"|u1", DType::kU4},
    DTypeRow{"bfloat16", DType::kBF16},
    DTypeRow{"float8_e4m3fn", DType::kF8E4M3FN},
    DTypeRow{"float8_e4m3fnuz", DType::kF8E4M3FNUZ},
    DTypeRow{"float8_e5m2", DType::kF8E5M2},
    DTypeRow{"float8_e5m2fnuz", DType::kF8E5M2FNUZ},
};

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

// A file's own words, fit for a message.
std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > 40 ? "...'" : "'");
}

// Reads the Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  Result<> read() {
    if (!take('{')) return unexpected("'{'");
    while (!take('}')) {
      KILN_ASSIGN_OR_RETURN(const auto key, string());
      if (!take(':')) return unexpected("':'");
      KILN_RETURN_IF_ERROR(value(key));
      if (take(',')) continue;
      if (take('}')) break;
      return unexpected("',' or '}'");
    }
    skip_space();
    if (!text_.empty()) return unexpected("the end of the header");
    if (!descr) return corrupt("its header has no 'descr'");
    if (!fortran_order) return corrupt("its header has no 'fortran_order'");
    if (!shape) return corrupt("its header has no 'shape'");
    return Ok();
  }

  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;

 private:
  Error unexpected(const char* expected) const {
    return corrupt("its header has " + quoted(text_) + " where " + expected + " is expected");
  }

  void skip_space() {
    const size_t first = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(first, text_.size()));
  }
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  Result<std::string_view> string() {
    const char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    const size_t end = quote == '\0' ? std::string_view::npos : text_.find(quote);
    if (end == std::string_view::npos) return unexpected("a string");
    const std::string_view result = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return result;
  }

  Result<> value(std::string_view key) {
    if (key == "descr") {
      skip_space();
      if (text_.starts_with('[')) {
        return Error{ErrorCode::kUnsupported,
                     "its type is structured, expected plain numbers: save each field by itself"};
      }
      KILN_ASSIGN_OR_RETURN(descr, string());
      return Ok();
    }
    if (key == "fortran_order") {
      if (take_word("True")) {
        fortran_order = true;
      } else if (take_word("False")) {
        fortran_order = false;
      } else {
        return unexpected("True or False");
      }
      return Ok();
    }
    if (key == "shape") return extents();
    return corrupt("its header has the unknown key " + quoted(key));
  }

  Result<> extents() {
    if (!take('(')) return unexpected("'('");
    Shape result;
    while (!take(')')) {
      skip_space();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) return unexpected("an extent");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      take_word("L");  // Python 2's long integers
      result.push_back(extent);
      if (result.size() > kMostRank) {
        return corrupt("it has more than " + std::to_string(kMostRank) + " axes");
      }
      if (take(',')) continue;
      if (take(')')) break;
      return unexpected("',' or ')'");
    }
    shape = std::move(result);
    return Ok();
  }

  std::string_view text_;
};

Result<> set_dtype(std::string_view descr, Header& header) {
  header.raw = descr == "|V1" || descr == "<V1";
  if (header.raw) {
    header.type.dtype = DType::kU8;
    return Ok();
  }
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                [&](const DTypeRow& r) { return r.descr == descr; });
  if (row != kDTypes.end()) {
    header.type.dtype = row->dtype;
    return Ok();
  }
  const std::string found = "its dtype is " + quoted(descr);
  if (descr.starts_with('>')) {
    return Error{ErrorCode::kUnsupported,
                 found + ", big-endian, expected little-endian: convert it with astype()"};
  }
  return Error{ErrorCode::kUnsupported, found + ", expected a float, an integer or bool"};
}

struct Preamble {
  size_t begin = 0, length = 0;  // of the dict
};

Result<Preamble> read_preamble(std::span<const std::byte> file) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(file[i]); };
  constexpr size_t kVersion1 = 10, kVersion2 = 12;
  if (!has_npy_magic(file) || file.size() < kVersion1) {
    return corrupt("it does not begin like a .npy file");
  }
  if (byte(6) < 1 || byte(6) > 3) {
    return Error{ErrorCode::kVersionMismatch,
                 "its format version is " + std::to_string(byte(6)) + ", expected 1, 2 or 3"};
  }
  Preamble p;
  p.begin = byte(6) == 1 ? kVersion1 : kVersion2;
  if (file.size() < p.begin) return corrupt("it ends within its header");
  p.length = byte(8) | byte(9) << 8;
  if (p.begin == kVersion2) p.length |= byte(10) << 16 | byte(11) << 24;
  if (p.length > file.size() - p.begin) return corrupt("it ends within its header");
  return p;
}

}  // namespace

bool has_npy_magic(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), file.begin(), [](char a, std::byte b) {
           return static_cast<unsigned char>(a) == static_cast<unsigned char>(b);
         });
}

Result<Header> parse_header(std::span<const std::byte> file) {
  KILN_ASSIGN_OR_RETURN(const Preamble preamble, read_preamble(file));
  DictReader dict({reinterpret_cast<const char*>(file.data()) + preamble.begin, preamble.length});
  KILN_RETURN_IF_ERROR(dict.read());
  Header header;
  KILN_RETURN_IF_ERROR(set_dtype(*dict.descr, header));
  header.type.shape = *std::move(dict.shape);
  header.fortran_order = *dict.fortran_order;
  header.bytes = preamble.begin + preamble.length;
  const auto count = checked_element_count(header.type.shape);
  const uint64_t found = file.size() - header.bytes;
  const auto element = static_cast<uint64_t>(bits_of(header.type.dtype)) / 8;
  if (!count || static_cast<uint64_t>(*count) > found / element ||
      static_cast<uint64_t>(*count) * element != found) {
    return corrupt("it holds " + std::to_string(found) + " bytes of data, expected those of " +
                   to_string(header.type));
  }
  return header;
}

std::string print_header(const TensorType& type) {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                [&](const DTypeRow& r) { return r.dtype == type.dtype; });
  std::string dict =
      "{'descr': '" + std::string(row->descr) + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : type.shape) dict += std::to_string(extent) + ", ";
  if (type.shape.size() > 1) dict.resize(dict.size() - 2);
  if (type.shape.size() == 1) dict.resize(dict.size() - 1);
  dict += "), }";
  constexpr size_t kPreamble = 10, kAlignment = 64;
  const size_t used = kPreamble + dict.size() + 1;
  dict.append((used + kAlignment - 1) / kAlignment * kAlignment - used, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xFF);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace kiln::npy
