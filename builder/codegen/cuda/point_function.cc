#include "builder/codegen/cuda/point_function.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "builder/codegen/cuda/lane_motion.h"
#include "builder/codegen/cuda/loop_code.h"
#include "builder/codegen/cuda/tile_code.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// The dims, outermost first, whose flat index the map is; nullopt if it is none of all dims.
std::optional<std::vector<uint32_t>> digits_of(const loop::IndexMap& map,
                                               const loop::LoopKernel& kernel) {
  if (map.offset != 0 || !map.gathers.empty()) return std::nullopt;
  std::vector<loop::MapTerm> terms;
  for (const loop::MapTerm& term : map.terms) {
    if (kernel.dims[term.dim].extent == 1) continue;
    if (loop::term_extent(term, kernel) != kernel.dims[term.dim].extent) return std::nullopt;
    terms.push_back(term);
  }
  std::ranges::sort(terms, {}, [](const loop::MapTerm& term) { return -term.stride; });
  std::vector<uint32_t> dims;
  int64_t inner = 1;
  for (size_t i = terms.size(); i-- > 0;) {
    if (terms[i].stride != inner || std::ranges::count(dims, terms[i].dim)) return std::nullopt;
    dims.insert(dims.begin(), terms[i].dim);
    inner *= kernel.dims[terms[i].dim].extent;
  }
  for (uint32_t dim = 0; dim < kernel.dims.size(); ++dim) {
    if (kernel.dims[dim].extent == 1)
      dims.insert(dims.begin(), dim);
    else if (!std::ranges::count(dims, dim))
      return std::nullopt;
  }
  return dims;
}

// Where the map is in part `part` of a row of `columns`, if rows have `parts` of the same length.
loop::IndexMap within_part(loop::IndexMap map, int64_t part, int64_t parts, int64_t columns) {
  map.offset -= part * (columns / parts);
  for (loop::MapTerm& term : map.terms) {
    if (term.stride >= columns && term.stride % columns == 0) term.stride /= parts;
  }
  return map;
}

// The loads of `input` that the function's arguments take the place of, one of each part of a row,
// and the dims whose flat index within the part they are at.
struct Element {
  std::vector<ExprId> loads;
  std::vector<uint32_t> dims;
};

Result<std::vector<ExprId>> loads_of(const KernelFacts& facts, uint32_t input) {
  std::vector<ExprId> loads;
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    const Expr& e = facts.expr(id);
    if (!facts.live[id] || e.kind != Kind::kLoad || e.buffer != input) continue;
    if (!e.bounds.empty()) return refuse("the element is not read everywhere");
    if (register_type(e.dtype) != "float") return refuse("the product is no float");
    loads.push_back(id);
  }
  if (loads.empty()) return refuse("the element is not read");
  return loads;
}

Result<> check_points(const KernelFacts& facts) {
  if (facts.reduced != 0 || facts.levels > 1) return refuse("what follows the product reduces");
  if (facts.wide_index) return refuse("there are over 2^31 elements");
  return Ok();
}

Result<Element> element_of(const KernelFacts& facts, uint32_t input) {
  KILN_RETURN_IF_ERROR(check_points(facts));
  Element element;
  KILN_ASSIGN_OR_RETURN(element.loads, loads_of(facts, input));
  if (element.loads.size() > 1) return refuse("the element is read in several places");
  auto dims = digits_of(facts.expr(element.loads[0]).map, facts.kernel);
  if (!dims) return refuse("what follows the product moves its elements");
  element.dims = *std::move(dims);
  return element;
}

// One element, or one of each half of a row of `columns`.
Result<Element> element_of_rows(const KernelFacts& facts, uint32_t input, int64_t columns) {
  KILN_RETURN_IF_ERROR(check_points(facts));
  Element element;
  KILN_ASSIGN_OR_RETURN(element.loads, loads_of(facts, input));
  const auto parts = static_cast<int64_t>(element.loads.size());
  if (parts == 1) return element_of(facts, input);
  if (parts > 2 || columns % parts != 0) return refuse("the element is read in several places");
  std::ranges::sort(element.loads, {}, [&](ExprId id) { return facts.expr(id).map.offset; });
  for (int64_t part = 0; part < parts; ++part) {
    const loop::IndexMap& map = facts.expr(element.loads[static_cast<size_t>(part)]).map;
    const auto dims = digits_of(within_part(map, part, parts, columns), facts.kernel);
    if (!dims || (part > 0 && *dims != element.dims)) {
      return refuse("what follows the product joins other elements than those of its rows' halves");
    }
    element.dims = *dims;
  }
  return element;
}

// The buffers but for `input`: of a kernel, "const void* b1, void* b2"; as arguments, "b1, b2"; as
// members of Operands, a line each; and as variables, but for outputs that are kept.
struct BufferTexts {
  std::string parameters, arguments, fields, names;
};

BufferTexts buffer_texts(const loop::LoopKernel& kernel, uint32_t input, bool name_outputs) {
  BufferTexts texts;
  for (uint32_t b = 0; b < kernel.buffers.size(); ++b) {
    if (b == input) continue;
    const std::string name = "b" + std::to_string(b);
    std::string declared = kernel.buffers[b].output ? "void* " : "const void* ";
    declared += name;
    texts.parameters.append(texts.parameters.empty() ? "" : ", ").append(declared);
    texts.arguments.append(texts.arguments.empty() ? "" : ", ").append(name);
    texts.fields.append("  ").append(declared).append(";\n");
    if (kernel.buffers[b].output && !name_outputs) continue;
    texts.names.append("  ").append(declared).append(" = operands.").append(name).append(";\n");
  }
  return texts;
}

// Whether the access is at the element's place, for both of a pair.
bool is_beside(const KernelFacts& facts, const TileCode& tile, ExprId id, const Element& element) {
  const Expr& e = facts.expr(id);
  return tile.motion(id) == Motion::kPacked && e.bounds.empty() &&
         digits_of(e.map, facts.kernel) == element.dims;
}

bool is_16_bit_float(DType dtype) { return is_float(dtype) && bits_of(dtype) == 16; }

// The only store, if it can be made of pairs.
Result<ExprId> pair_store(const KernelFacts& facts, const TileCode& tile, const Element& element) {
  std::optional<ExprId> found;
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    if (!facts.live[id] || facts.expr(id).kind != Kind::kStore) continue;
    if (found) return refuse("there are several results");
    found = id;
  }
  if (!found) return refuse("there is no result");
  const DType dtype = facts.expr(*found).dtype;
  if (!is_float(dtype) || bits_of(dtype) > 32 || bits_of(dtype) < 8) {
    return refuse("the result is " + std::string(to_string(dtype)) +
                  ", a float of 8 to 32 bits expected");
  }
  if (!is_beside(facts, tile, *found, element)) return refuse("the result's elements are moved");
  return *found;
}

// The input that lies as the result does, if there is one; its loads take what comes with the call.
std::optional<uint32_t> place_residual(const KernelFacts& facts, const Element& element,
                                       TileCode& tile) {
  std::optional<uint32_t> found;
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    const Expr& e = facts.expr(id);
    if (!facts.live[id] || e.kind != Kind::kLoad || tile.is_placed(id)) continue;
    if (!is_16_bit_float(e.dtype) || !is_beside(facts, tile, id, element)) continue;
    if (facts.kernel.buffers[e.buffer].elements != facts.extent(facts.parallel)) continue;
    if (found && *found != e.buffer) continue;
    found = e.buffer;
    tile.place(id, "beside");
  }
  return found;
}

// Lines that define the dims of an element's row and column; of their flat index where a dim spans
// rows.
void add_dims(const KernelFacts& facts, const std::vector<uint32_t>& dims, int64_t columns,
              Lines& body) {
  size_t first = dims.size();
  int64_t inner = 1;
  while (first > 0 && inner < columns) inner *= facts.kernel.dims[dims[--first]].extent;
  const auto add = [&](std::vector<uint32_t> some, const std::string& flat) {
    for (const std::string& line : dims_of_flat(facts, some, flat)) body.add(line);
  };
  if (inner != columns) {
    body.add("const int at = row * " + std::to_string(columns) + " + column;");
    return add(dims, "at");
  }
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(first);
  add({dims.begin(), middle}, "row");
  add({middle, dims.end()}, "column");
}

// What a call gets is no pack of loaded elements, and cannot be chosen like one.
Result<> check_choices(const KernelFacts& facts, const TileCode& tile) {
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    if (facts.live[id] && facts.expr(id).kind == Kind::kApply && tile.is_pack(id)) {
      return refuse("a choice between neighbours follows the product");
    }
  }
  return Ok();
}

// All that is not placed.
void write_rest(const KernelFacts& facts, TileCode& tile) {
  TileCode::Section section{{}, {}, "", true};
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    if (facts.live[id]) section.exprs.push_back(id);
  }
  tile.section(section);
}

// "struct Elements", what a call gets of `input` for several lanes.
std::string elements_text(uint32_t lanes) {
  return "struct Elements {\n  float of[" + std::to_string(lanes) +
         "];\n};\nKILN_DEVICE float get(const Elements& elements, int l) { return "
         "elements.of[l]; }\n";
}

}  // namespace

Result<PointFunction> point_function(const loop::LoopKernel& kernel, uint32_t input,
                                     uint32_t lanes) {
  const KernelFacts facts(kernel);
  KILN_ASSIGN_OR_RETURN(const Element element, element_of(facts, input));
  const BufferTexts buffers = buffer_texts(kernel, input, true);
  Lines body(1);
  for (const std::string& line : dims_of_flat(facts, element.dims, "at")) body.add(line);
  const bool single = element.dims.empty();
  if (lanes > 1 && (single || kernel.dims[element.dims.back()].extent % lanes != 0)) {
    return refuse("rows of the result are no multiples of " + std::to_string(lanes));
  }
  TileCode tile(facts, Lanes{single ? 0 : element.dims.back(), lanes}, body);
  if (lanes > 1 && !tile.is_pack(element.loads[0])) return refuse("the product is moved");
  KILN_RETURN_IF_ERROR(check_choices(facts, tile));
  tile.place(element.loads[0], "element");
  write_rest(facts, tile);
  return PointFunction{"struct Operands {\n" + buffers.fields + "};\n" +
                           (lanes > 1 ? elements_text(lanes) : "") +
                           "KILN_DEVICE void finish(const Operands& operands, " +
                           (lanes > 1 ? "const Elements&" : "float") + " element, int at) {\n" +
                           buffers.names + body.text() + "}\n",
                       buffers.parameters, buffers.arguments};
}

Result<RowFunction> row_function(const loop::LoopKernel& kernel, uint32_t input, int64_t columns) {
  const KernelFacts facts(kernel);
  KILN_ASSIGN_OR_RETURN(const Element element, element_of_rows(facts, input, columns));
  RowFunction made;
  made.parts = static_cast<uint32_t>(element.loads.size());
  Lines body(1);
  add_dims(facts, element.dims, columns / made.parts, body);
  TileCode tile(facts, Lanes{element.dims.empty() ? 0 : element.dims.back(), 1}, body);
  KILN_RETURN_IF_ERROR(check_choices(facts, tile));
  for (uint32_t part = 0; part < made.parts; ++part) {
    tile.place(element.loads[part], "elements[" + std::to_string(part) + "]");
  }
  write_rest(facts, tile);
  const BufferTexts buffers = buffer_texts(kernel, input, true);
  made.text = "struct Operands {\n" + buffers.fields +
              "};\nKILN_DEVICE void finish(const Operands& operands, const float (&elements)[" +
              std::to_string(made.parts) + "], int row, int column) {\n" + buffers.names +
              body.text() + "}\n";
  made.parameters = buffers.parameters;
  made.arguments = buffers.arguments;
  return made;
}

Result<PairFunction> pair_function(const loop::LoopKernel& kernel, uint32_t input,
                                   int64_t columns) {
  const KernelFacts facts(kernel);
  KILN_ASSIGN_OR_RETURN(const Element element, element_of_rows(facts, input, columns));
  PairFunction made;
  made.parts = static_cast<uint32_t>(element.loads.size());
  columns /= made.parts;
  if (element.dims.empty() || kernel.dims[element.dims.back()].extent % 2 != 0 ||
      columns % 2 != 0) {
    return refuse("rows of the result have odd lengths");
  }
  Lines body(1);
  add_dims(facts, element.dims, columns, body);
  TileCode tile(facts, Lanes{element.dims.back(), 2}, body);
  KILN_ASSIGN_OR_RETURN(const ExprId store, pair_store(facts, tile, element));
  for (uint32_t part = 0; part < made.parts; ++part) {
    if (!tile.is_pack(element.loads[part])) return refuse("the product is moved");
    tile.place(element.loads[part], "elements[" + std::to_string(part) + "]");
  }
  KILN_RETURN_IF_ERROR(check_choices(facts, tile));
  made.result = facts.expr(store).dtype;
  if (is_16_bit_float(made.result)) made.residual = place_residual(facts, element, tile);
  write_rest(facts, tile);
  const BufferTexts buffers = buffer_texts(kernel, input, false);
  const std::string result = "b" + std::to_string(facts.expr(store).buffer);
  const std::string beside =
      made.residual
          ? "  const Pack<" + std::string(element_type(kernel.buffers[*made.residual].dtype)) +
                ", 2> beside{{residual}};\n"
          : "";
  const std::string pack = "Pack<" + std::string(element_type(made.result)) + ", 2>";
  made.text = "struct Operands {\n" + buffers.fields + "};\n" + elements_text(2) +
              "template <class Index>\nKILN_DEVICE void store(" + pack + "& kept, Index, const " +
              pack + "& pack) {\n  kept = pack;\n}\nKILN_DEVICE " + pack +
              " finish(const Operands& operands, const Elements (&elements)[" +
              std::to_string(made.parts) +
              "],\n                            unsigned residual, int row, int column) {\n" +
              buffers.names + beside + "  " + pack + " " + result + ";\n" + body.text() +
              "  return " + result + ";\n}\n";
  made.parameters = buffers.parameters;
  made.arguments = buffers.arguments;
  return made;
}

}  // namespace kiln::codegen
