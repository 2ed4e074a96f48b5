#include <string>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::loop {
namespace {

std::string name(ExprId id) { return "%" + std::to_string(id); }

std::string text_of(const IndexMap& map) {
  std::string out;
  const auto add = [&](int64_t stride, const std::string& what) {
    if (!out.empty()) out += " + ";
    if (stride != 1) out += std::to_string(stride) + "*";
    out += what;
  };
  for (const MapTerm& term : map.terms) {
    std::string index = "d" + std::to_string(term.dim);
    if (term.divisor != 1) index += "/" + std::to_string(term.divisor);
    if (term.modulus != 0) index += "%" + std::to_string(term.modulus);
    add(term.stride, term.divisor != 1 || term.modulus != 0 ? "(" + index + ")" : index);
  }
  for (const GatherTerm& gather : map.gathers) {
    add(gather.stride, name(gather.index) + "<" + std::to_string(gather.extent) + ">");
  }
  if (out.empty()) return std::to_string(map.offset);
  if (map.offset > 0) out += " + " + std::to_string(map.offset);
  if (map.offset < 0) out += " - " + std::to_string(map.offset).substr(1);
  return out;
}

std::string bits(uint64_t value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), kHex[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + out;
}

std::string arguments(const Expr& expr) {
  std::string out = "(";
  for (size_t i = 0; i < expr.args.size(); ++i) {
    if (i > 0) out += ", ";
    out += name(expr.args[i]);
  }
  return out + ")";
}

std::string right_side(const Expr& expr) {
  const std::string place = "b" + std::to_string(expr.buffer) + "[" + text_of(expr.map) + "]";
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return bits(expr.constant);
    case Expr::Kind::kIota:
      return text_of(expr.map);
    case Expr::Kind::kLoad: {
      std::string out = place;
      for (const Bound& bound : expr.bounds) {
        out += " if " + std::to_string(bound.low) + " <= " + text_of(bound.map) + " < " +
               std::to_string(bound.high);
      }
      return expr.bounds.empty() ? out : out + " else " + bits(expr.constant);
    }
    case Expr::Kind::kApply:
      return std::string(to_string(expr.fn)) + arguments(expr);
    case Expr::Kind::kCast:
      return (expr.saturate ? "cast" : "cast_wrapping") + arguments(expr);
    case Expr::Kind::kReduce:
      return "reduce_" + std::string(to_string(expr.reduce_fn)) + arguments(expr);
    case Expr::Kind::kStore:
      return place + " = " + name(expr.args[0]);
  }
  return "";
}

}  // namespace

std::string to_text(const LoopKernel& kernel) {
  std::string out = "loop";
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    out += " d" + std::to_string(d) + (kernel.dims[d].reduced ? "~" : "<") +
           std::to_string(kernel.dims[d].extent);
  }
  out += '\n';
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    out += "  " + std::string(buffer.output ? "out" : "in") + " b" + std::to_string(b) + " " +
           std::string(to_string(buffer.dtype)) + "[" + std::to_string(buffer.elements) + "]\n";
  }
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    const Expr& expr = kernel.exprs[id];
    out += "  ";
    if (expr.kind != Expr::Kind::kStore) {
      out += name(id) + ": " + std::string(to_string(expr.dtype)) + " = ";
    }
    out += right_side(expr) + "\n";
  }
  return out;
}

}  // namespace kiln::loop
