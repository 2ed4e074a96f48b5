#include "builder/codegen/cost.h"

#include <algorithm>
#include <vector>

#include "formats/loop_ir/analysis.h"

namespace kiln {
namespace {

using loop::Expr;
using loop::LoopKernel;

constexpr double kStartUs = 2.0;
constexpr double kBytesPerUs = 8e3;
constexpr double kOpsPerUs = 2e3;

int64_t bytes_of(int64_t elements, DType dtype) { return (elements * bits_of(dtype) + 7) / 8; }

// In additions.
int64_t price_of(const Expr& expr) {
  switch (expr.fn) {
    case ScalarFn::kDiv:
    case ScalarFn::kReciprocal:
    case ScalarFn::kSqrt:
      return 4;
    case ScalarFn::kExp:
    case ScalarFn::kErf:
    case ScalarFn::kTanh:
    case ScalarFn::kSigmoid:
    case ScalarFn::kMod:
    case ScalarFn::kFmod:
      return 10;
    case ScalarFn::kLog:
    case ScalarFn::kPow:
    case ScalarFn::kSin:
    case ScalarFn::kCos:
    case ScalarFn::kTan:
    case ScalarFn::kAsin:
    case ScalarFn::kAcos:
    case ScalarFn::kAtan:
    case ScalarFn::kSinh:
    case ScalarFn::kCosh:
    case ScalarFn::kAsinh:
    case ScalarFn::kAcosh:
    case ScalarFn::kAtanh:
      return 30;
    default:
      return 1;
  }
}

// Elements of its buffer that a load can reach.
int64_t reach(const Expr& load, const LoopKernel& kernel) {
  if (!load.map.gathers.empty()) return kernel.buffers[load.buffer].elements;
  int64_t reach = 1;
  for (const loop::MapTerm& term : load.map.terms) {
    if (term.stride != 0) reach *= loop::term_extent(term, kernel);
    if (reach >= kernel.buffers[load.buffer].elements) break;
  }
  return std::min(reach, kernel.buffers[load.buffer].elements);
}

}  // namespace

LoopCost cost_of(const LoopKernel& kernel) {
  LoopCost cost;
  const std::vector<loop::DimSet> varying = loop::varying_dims(kernel);
  std::vector<int64_t> read(kernel.buffers.size());
  for (size_t id = 0; id < kernel.exprs.size(); ++id) {
    const Expr& expr = kernel.exprs[id];
    switch (expr.kind) {
      case Expr::Kind::kLoad:
        read[expr.buffer] = std::max(read[expr.buffer], reach(expr, kernel));
        break;
      case Expr::Kind::kApply:
        cost.scalar_ops += price_of(expr) * loop::points(kernel, varying[id]).value_or(0);
        break;
      case Expr::Kind::kCast:
        cost.scalar_ops += loop::points(kernel, varying[id]).value_or(0);
        break;
      case Expr::Kind::kReduce:
        cost.scalar_ops +=
            loop::points(kernel, varying[expr.args[0]] | loop::reduced_dims(kernel)).value_or(0);
        break;
      default:
        break;
    }
  }
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const loop::Buffer& buffer = kernel.buffers[b];
    if (buffer.output)
      cost.bytes_written += bytes_of(buffer.elements, buffer.dtype);
    else
      cost.bytes_read += bytes_of(read[b], buffer.dtype);
  }
  return cost;
}

double host_us(const LoopCost& cost) {
  const double memory = static_cast<double>(cost.bytes_read + cost.bytes_written) / kBytesPerUs;
  const double arithmetic = static_cast<double>(cost.scalar_ops) / kOpsPerUs;
  return kStartUs + std::max(memory, arithmetic);
}

}  // namespace kiln
