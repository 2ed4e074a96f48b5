#include "builder/codegen/cuda/point_function.h"

#include <algorithm>
#include <optional>
#include <vector>

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

// The load of the input that the function's argument takes the place of.
Result<ExprId> only_load(const KernelFacts& facts, uint32_t input) {
  std::optional<ExprId> found;
  for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
    const Expr& e = facts.expr(id);
    if (!facts.live[id] || e.kind != Kind::kLoad || e.buffer != input) continue;
    if (found || !e.bounds.empty()) return refuse("the element is read in several places");
    found = id;
  }
  if (!found) return refuse("the element is not read");
  return *found;
}

}  // namespace

Result<PointFunction> point_function(const loop::LoopKernel& kernel, uint32_t input,
                                     uint32_t lanes) {
  const KernelFacts facts(kernel);
  if (facts.reduced != 0 || facts.levels > 1) return refuse("what follows the product reduces");
  if (facts.wide_index) return refuse("there are over 2^31 elements");
  KILN_ASSIGN_OR_RETURN(const ExprId load, only_load(facts, input));
  const auto dims = digits_of(facts.expr(load).map, kernel);
  if (!dims) return refuse("what follows the product moves its elements");
  if (register_type(facts.expr(load).dtype) != "float") return refuse("the product is no float");

  PointFunction made;
  std::string fields, names;
  for (uint32_t b = 0; b < kernel.buffers.size(); ++b) {
    if (b == input) continue;
    const std::string name = "b" + std::to_string(b);
    std::string declared = kernel.buffers[b].output ? "void* " : "const void* ";
    declared += name;
    made.parameters.append(made.parameters.empty() ? "" : ", ").append(declared);
    made.arguments.append(made.arguments.empty() ? "" : ", ").append(name);
    fields.append("  ").append(declared).append(";\n");
    names.append("  ").append(declared).append(" = operands.").append(name).append(";\n");
  }
  Lines body(1);
  for (const std::string& line : dims_of_flat(facts, *dims, "at")) body.add(line);
  const bool single = dims->empty();
  if (lanes > 1 && (single || kernel.dims[dims->back()].extent % lanes != 0)) {
    return refuse("rows of the result are no multiples of " + std::to_string(lanes));
  }
  TileCode tile(facts, Lanes{single ? 0 : dims->back(), lanes}, body);
  if (lanes > 1 && !tile.is_pack(load)) return refuse("the product is moved");
  tile.place(load, "element");
  TileCode::Section section{{}, {}, "", true};
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    if (facts.live[id] && id != load) section.exprs.push_back(id);
  }
  tile.section(section);
  const std::string elements =
      "struct Elements {\n  float of[" + std::to_string(lanes) +
      "];\n};\nKILN_DEVICE float get(const Elements& elements, int l) { return elements.of[l]; }\n";
  made.text = "struct Operands {\n" + fields + "};\n" + (lanes > 1 ? elements : "") +
              "KILN_DEVICE void finish(const Operands& operands, " +
              (lanes > 1 ? "const Elements&" : "float") + " element, int at) {\n" + names +
              body.text() + "}\n";
  return made;
}

}  // namespace kiln::codegen
