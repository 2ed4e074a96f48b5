// LoopKernel: a loop nest over parallel and reduced dims whose body is a DAG of scalar expressions
// with index maps. One meaning, several executions: the host interprets it, codegen prints CUDA
// C++ from it, and it is stored in host engines (FORMAT.md beside this file).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/loop_ir/scalar_function.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::loop {

using ExprId = uint32_t;

struct Dim {
  int64_t extent = 1;
  bool reduced = false;
  friend bool operator==(const Dim&, const Dim&) = default;
};

// stride * ((d / divisor) % modulus); modulus 0 means none is needed.
struct MapTerm {
  uint32_t dim = 0;
  int64_t divisor = 1;
  int64_t modulus = 0;
  int64_t stride = 0;
  friend bool operator==(const MapTerm&, const MapTerm&) = default;
};

// stride * value of an integer expression, which must lie in [0, extent) when it is used:
// the address part of a gather. The interpreter checks the range.
struct GatherTerm {
  ExprId index = 0;
  int64_t extent = 0;
  int64_t stride = 0;
  friend bool operator==(const GatherTerm&, const GatherTerm&) = default;
};

// An element offset into a buffer: offset + sum of terms + sum of gathers.
struct IndexMap {
  int64_t offset = 0;
  std::vector<MapTerm> terms;
  std::vector<GatherTerm> gathers;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

// low <= map < high. A load whose bounds do not all hold reads nothing and yields its fill.
struct Bound {
  IndexMap map;  // no gathers
  int64_t low = 0, high = 0;
  friend bool operator==(const Bound&, const Bound&) = default;
};

struct Expr {
  // Numbers are stored in files: append only.
  enum class Kind : uint8_t {
    kConstant,  // `constant` holds the value's bits in `dtype`
    kIota,      // the value of `map` (no gathers), in `dtype` (i64 or i32)
    kLoad,      // buffers[buffer] at `map`, or `constant` where a bound fails; dtype = the buffer's
    kApply,     // fn(args), numeric arguments in one dtype
    kCast,      // args[0] to `dtype`; saturates where ONNX's Cast says so and `saturate` is set
    kReduce,    // reduce_fn of args[0] over all reduced dims; defined on the parallel dims only
    kStore,     // buffers[buffer] at `map` = args[0]; the last exprs of a kernel
  };
  Kind kind = Kind::kConstant;
  DType dtype = DType::kF32;
  ScalarFn fn = ScalarFn::kIdentity;
  ReduceFn reduce_fn = ReduceFn::kSum;
  bool saturate = true;
  std::vector<ExprId> args;  // earlier exprs only
  uint32_t buffer = 0;
  IndexMap map;
  std::vector<Bound> bounds;
  uint64_t constant = 0;  // raw bits of one element, low bytes first
  friend bool operator==(const Expr&, const Expr&) = default;
};

struct Buffer {
  DType dtype = DType::kF32;
  int64_t elements = 0;
  bool output = false;  // inputs come first, in the order of the operands
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// Rules (verify() checks them): args refer backwards; every map stays within its buffer for all
// points where the bounds hold; an expr that depends on a reduced dim other than through kReduce
// may be stored only with a map that covers those dims; outputs are written exactly once a point
// and never read; inputs are never written. f16, bf16 and 8-bit floats are computed in f32 and
// rounded by kCast and kStore only; sums of narrow floats accumulate in f32, of f64 in f64.
struct LoopKernel {
  std::vector<Dim> dims;
  std::vector<Buffer> buffers;
  std::vector<Expr> exprs;
  friend bool operator==(const LoopKernel&, const LoopKernel&) = default;
};

// Untrusted kernels (from a file) must pass this before anything else looks at them.
Result<> verify(const LoopKernel& kernel);

std::string to_text(const LoopKernel& kernel);  // for dumps; not parsed

std::string encode(const LoopKernel& kernel);
// Decodes and verifies.
Result<LoopKernel> decode_loop_kernel(std::span<const std::byte> bytes);

}  // namespace kiln::loop
