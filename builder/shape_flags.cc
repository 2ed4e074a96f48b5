#include "builder/shape_flags.h"

#include <algorithm>
#include <charconv>

namespace kiln {
namespace {

Error bad(std::string_view flag, std::string_view piece, const std::string& expected) {
  return {ErrorCode::kInvalidArgument,
          std::string(flag) + ": found '" + std::string(piece) + "', expected " + expected};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

bool parse_number(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

Result<Shape> parse_extents(std::string_view piece, std::string_view extents) {
  Shape shape;
  if (extents == "scalar") return shape;
  for (std::string_view extent : split(extents, 'x')) {
    shape.push_back(-1);
    if (extent == "B") continue;
    if (!parse_number(extent, shape.back())) {
      return bad("--shapes", piece, "extents like Bx3x224x224, B being the batch");
    }
  }
  return shape;
}

}  // namespace

Result<NamedShapeSet> parse_shapes(std::string_view text) {
  NamedShapeSet result;
  const size_t equals = text.find('=');
  const size_t colon = text.find(':');
  if (equals != std::string_view::npos && (colon == std::string_view::npos || equals < colon)) {
    result.name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    if (std::ranges::any_of(result.name, [](unsigned char c) { return c <= ' ' || c == 0x7f; })) {
      return bad("--shapes", result.name, "a set's name without blanks and control characters");
    }
  }
  for (std::string_view piece : split(text, ',')) {
    const size_t at = piece.rfind(':');
    if (at == std::string_view::npos || at == 0) {
      return bad("--shapes", piece, "NAME:EXTENTS, for example ids:Bx128");
    }
    KILN_ASSIGN_OR_RETURN(Shape shape, parse_extents(piece, piece.substr(at + 1)));
    if (!result.shapes.emplace(piece.substr(0, at), std::move(shape)).second) {
      return bad("--shapes", piece, "each input once");
    }
  }
  return result;
}

Result<std::vector<int64_t>> parse_batches(std::string_view text) {
  std::vector<int64_t> batches;
  for (std::string_view piece : split(text, ',')) {
    int64_t batch = 0;
    if (!parse_number(piece, batch) || batch < 1 || (!batches.empty() && batch <= batches.back())) {
      return bad("--batches", text, "ascending numbers like 1,4,32");
    }
    batches.push_back(batch);
  }
  return batches;
}

}  // namespace kiln
