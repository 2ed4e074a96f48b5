// The binary form; FORMAT.md beside this file describes it.
#include "formats/binary/byte_stream.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::loop {
namespace {

constexpr uint8_t kFormatVersion = 1;

void write(ByteWriter& out, const IndexMap& map) {
  out.signed_int(map.offset);
  out.unsigned_int(map.terms.size());
  for (const MapTerm& term : map.terms) {
    out.unsigned_int(term.dim);
    out.signed_int(term.divisor);
    out.signed_int(term.modulus);
    out.signed_int(term.stride);
  }
  out.unsigned_int(map.gathers.size());
  for (const GatherTerm& gather : map.gathers) {
    out.unsigned_int(gather.index);
    out.signed_int(gather.extent);
    out.signed_int(gather.stride);
  }
}

uint32_t read_u32(ByteReader& in) {
  const uint64_t value = in.unsigned_int();
  if (value > UINT32_MAX) in.fail();
  return static_cast<uint32_t>(value);
}

bool read_flag(ByteReader& in) {
  const uint8_t value = in.byte();
  if (value > 1) in.fail();
  return value == 1;
}

IndexMap read_map(ByteReader& in) {
  IndexMap map;
  map.offset = in.signed_int();
  map.terms.resize(in.count(4));
  for (MapTerm& term : map.terms) {
    term.dim = read_u32(in);
    term.divisor = in.signed_int();
    term.modulus = in.signed_int();
    term.stride = in.signed_int();
  }
  map.gathers.resize(in.count(3));
  for (GatherTerm& gather : map.gathers) {
    gather.index = read_u32(in);
    gather.extent = in.signed_int();
    gather.stride = in.signed_int();
  }
  return map;
}

void write(ByteWriter& out, const Expr& expr) {
  using Kind = Expr::Kind;
  out.byte(static_cast<uint8_t>(expr.kind));
  out.byte(static_cast<uint8_t>(expr.dtype));
  if (expr.kind == Kind::kApply) out.byte(static_cast<uint8_t>(expr.fn));
  if (expr.kind == Kind::kReduce) out.byte(static_cast<uint8_t>(expr.reduce_fn));
  if (expr.kind == Kind::kCast || expr.kind == Kind::kStore) out.byte(expr.saturate);
  if (expr.kind >= Kind::kApply) {
    out.unsigned_int(expr.args.size());
    for (const ExprId arg : expr.args) out.unsigned_int(arg);
  }
  if (expr.kind == Kind::kLoad || expr.kind == Kind::kStore) out.unsigned_int(expr.buffer);
  if (expr.kind == Kind::kLoad || expr.kind == Kind::kStore || expr.kind == Kind::kIota) {
    write(out, expr.map);
  }
  if (expr.kind == Kind::kLoad) {
    out.unsigned_int(expr.bounds.size());
    for (const Bound& bound : expr.bounds) {
      write(out, bound.map);
      out.signed_int(bound.low);
      out.signed_int(bound.high);
    }
  }
  if (expr.kind <= Kind::kLoad && expr.kind != Kind::kIota) out.fixed64(expr.constant);
}

Expr read_expr(ByteReader& in) {
  using Kind = Expr::Kind;
  Expr expr;
  expr.kind = static_cast<Kind>(in.byte());
  expr.dtype = static_cast<DType>(in.byte());
  if (expr.kind > Kind::kStore) in.fail();
  if (expr.kind == Kind::kApply) expr.fn = static_cast<ScalarFn>(in.byte());
  if (expr.kind == Kind::kReduce) expr.reduce_fn = static_cast<ReduceFn>(in.byte());
  if (expr.kind == Kind::kCast || expr.kind == Kind::kStore) expr.saturate = read_flag(in);
  if (expr.kind >= Kind::kApply) {
    expr.args.resize(in.count(1));
    for (ExprId& arg : expr.args) arg = read_u32(in);
  }
  if (expr.kind == Kind::kLoad || expr.kind == Kind::kStore) expr.buffer = read_u32(in);
  if (expr.kind == Kind::kLoad || expr.kind == Kind::kStore || expr.kind == Kind::kIota) {
    expr.map = read_map(in);
  }
  if (expr.kind == Kind::kLoad) {
    expr.bounds.resize(in.count(5));
    for (Bound& bound : expr.bounds) {
      bound.map = read_map(in);
      bound.low = in.signed_int();
      bound.high = in.signed_int();
    }
  }
  if (expr.kind <= Kind::kLoad && expr.kind != Kind::kIota) expr.constant = in.fixed64();
  return expr;
}

}  // namespace

std::string encode(const LoopKernel& kernel) {
  ByteWriter out;
  out.byte(kFormatVersion);
  out.unsigned_int(kernel.dims.size());
  for (const Dim& dim : kernel.dims) {
    out.signed_int(dim.extent);
    out.byte(dim.reduced);
  }
  out.unsigned_int(kernel.buffers.size());
  for (const Buffer& buffer : kernel.buffers) {
    out.byte(static_cast<uint8_t>(buffer.dtype));
    out.signed_int(buffer.elements);
    out.byte(buffer.output);
  }
  out.unsigned_int(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) write(out, expr);
  return out.take();
}

Result<LoopKernel> decode_loop_kernel(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const uint8_t version = in.byte();
  if (version != kFormatVersion) {
    return Error{ErrorCode::kVersionMismatch, "loop kernel: format version " +
                                                  std::to_string(version) + ", this build reads " +
                                                  std::to_string(kFormatVersion)};
  }
  LoopKernel kernel;
  kernel.dims.resize(in.count(2));
  for (Dim& dim : kernel.dims) {
    dim.extent = in.signed_int();
    dim.reduced = read_flag(in);
  }
  kernel.buffers.resize(in.count(3));
  for (Buffer& buffer : kernel.buffers) {
    buffer.dtype = static_cast<DType>(in.byte());
    buffer.elements = in.signed_int();
    buffer.output = read_flag(in);
  }
  const uint64_t exprs = in.count(4);
  for (uint64_t i = 0; i < exprs && in.ok(); ++i) kernel.exprs.push_back(read_expr(in));
  if (!in.done()) {
    return Error{ErrorCode::kCorruptData, "loop kernel: bad byte near offset " +
                                              std::to_string(in.position()) + " of " +
                                              std::to_string(bytes.size())};
  }
  KILN_RETURN_IF_ERROR(verify(kernel));
  return kernel;
}

}  // namespace kiln::loop
