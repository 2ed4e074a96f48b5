// Every scalar function as an operation on tensors, with numpy's broadcasting.
#include <array>
#include <cstring>
#include <utility>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/scalar_apply.h"
#include "engine/host/plain/strided_copy.h"

namespace kiln::host {
namespace {

constexpr int64_t kBlock = 1024;
constexpr size_t kMostOperands = 3;

// Applies a function to n elements, all operands dense.
using BlockFn = void (*)(const void* const* operands, void* out, int64_t n);

template <ScalarFn fn, class T>
void block(const void* const* operands, void* out, int64_t n) {
  const T* a = static_cast<const T*>(operands[0]);
  if constexpr (fn < ScalarFn::kAdd) {
    auto* to = static_cast<decltype(apply<fn, T>(*a))*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = apply<fn, T>(a[i]);
  } else {
    const T* b = static_cast<const T*>(operands[1]);
    auto* to = static_cast<decltype(apply<fn, T>(*a, *b))*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = apply<fn, T>(a[i], b[i]);
  }
}

template <class T>
void where_block(const void* const* operands, void* out, int64_t n) {
  const auto* condition = static_cast<const uint8_t*>(operands[0]);
  const T *a = static_cast<const T*>(operands[1]), *b = static_cast<const T*>(operands[2]);
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = condition[i] ? a[i] : b[i];
}

template <class B, class E>
void power_block(const void* const* operands, void* out, int64_t n) {
  const B* base = static_cast<const B*>(operands[0]);
  const E* exponent = static_cast<const E*>(operands[1]);
  for (int64_t i = 0; i < n; ++i) static_cast<B*>(out)[i] = power(base[i], exponent[i]);
}

template <ScalarFn fn, class T>
constexpr BlockFn block_or_null() {
  if constexpr (takes<fn, T>())
    return &block<fn, T>;
  else
    return nullptr;
}

// One entry a function, null where T has no such function.
template <class T>
BlockFn block_of(ScalarFn fn) {
  static constexpr auto kTable = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<BlockFn, kScalarFnCount>{block_or_null<static_cast<ScalarFn>(i), T>()...};
  }(std::make_index_sequence<kScalarFnCount>());
  return kTable[static_cast<size_t>(fn)];
}

BlockFn find_block(ScalarFn fn, std::span<const HostInput> inputs) {
  const DType dtype = inputs[fn == ScalarFn::kWhere ? 1 : 0].type.dtype;
  if (fn == ScalarFn::kWhere) {
    return visit_size(bits_of(dtype) / 8, []<class T>() -> BlockFn { return &where_block<T>; });
  }
  if (fn == ScalarFn::kPow) {
    return visit_number(dtype, [&]<class B>() {
      return visit_number(inputs[1].type.dtype,
                          []<class E>() -> BlockFn { return &power_block<B, E>; });
    });
  }
  const bool logical =
      fn == ScalarFn::kNot || fn == ScalarFn::kAnd || fn == ScalarFn::kOr || fn == ScalarFn::kXor;
  if (logical && dtype != DType::kBool) return nullptr;
  return visit_number(dtype, [&]<class T>() { return block_of<T>(fn); });
}

// How an operand is read: element i of the dense result is at the strided position of i.
struct Operand {
  int64_t bytes = 1;             // of an element
  bool dense = false;            // position i itself
  std::vector<int64_t> strides;  // one for each axis of Plan::extents
};

struct Plan {
  Shape extents;  // coalesced
  std::vector<Operand> operands;
  BlockFn apply = nullptr;
  int64_t count = 0, out_bytes = 1;
};

void erase_axis(Plan& plan, size_t axis) {
  plan.extents.erase(plan.extents.begin() + static_cast<int64_t>(axis));
  for (Operand& o : plan.operands) o.strides.erase(o.strides.begin() + static_cast<int64_t>(axis));
}

// Drops axes of extent 1 and joins axes that every operand walks as one.
void coalesce(Plan& plan) {
  for (size_t i = plan.extents.size(); i-- > 0;) {
    if (plan.extents[i] == 1) erase_axis(plan, i);
  }
  for (size_t i = plan.extents.size(); i-- > 1;) {
    bool joins = true;
    for (const Operand& o : plan.operands) {
      joins &= o.strides[i - 1] == o.strides[i] * plan.extents[i];
    }
    if (!joins) continue;
    plan.extents[i] *= plan.extents[i - 1];
    erase_axis(plan, i - 1);
  }
}

Plan make_plan(const Prepare& p, BlockFn apply) {
  Plan plan{
      p.outputs[0].shape, {}, apply, p.outputs[0].elements(), bits_of(p.outputs[0].dtype) / 8};
  for (const HostInput& in : p.inputs) {
    plan.operands.push_back({bits_of(in.type.dtype) / 8, in.type.shape == p.outputs[0].shape,
                             broadcast_strides(in.type.shape, plan.extents.size())});
  }
  coalesce(plan);
  return plan;
}

// Elements [begin, begin + n) of the broadcast operand, dense.
template <class T>
void expand(const Plan& plan, const Operand& operand, const T* from, int64_t begin, int64_t n,
            T* to) {
  const size_t rank = plan.extents.size();
  if (rank == 0) return void(std::fill_n(to, n, *from));
  const int64_t inner = plan.extents[rank - 1], step = operand.strides[rank - 1];
  for (int64_t done = 0; done < n;) {
    int64_t rest = (begin + done) / inner;
    const int64_t at = (begin + done) % inner, run = std::min(inner - at, n - done);
    const T* row = from + at * step;
    for (size_t i = rank - 1; i-- > 0; rest /= plan.extents[i]) {
      row += rest % plan.extents[i] * operand.strides[i];
    }
    if (step == 0)
      std::fill_n(to + done, run, *row);
    else
      for (int64_t i = 0; i < run; ++i) to[done + i] = row[i * step];
    done += run;
  }
}

void run_blocks(const Plan& plan, Inputs inputs, void* out, int64_t first, int64_t last) {
  alignas(64) std::array<std::array<std::byte, kBlock * 8>, kMostOperands> scratch;
  for (int64_t begin = first * kBlock; begin < std::min(last * kBlock, plan.count);
       begin += kBlock) {
    const int64_t n = std::min(kBlock, plan.count - begin);
    std::array<const void*, kMostOperands> blocks{};
    for (size_t i = 0; i < plan.operands.size(); ++i) {
      const Operand& operand = plan.operands[i];
      blocks[i] = static_cast<const std::byte*>(inputs[i]) + begin * operand.bytes;
      if (operand.dense) continue;
      visit_size(operand.bytes, [&]<class T>() {
        expand(plan, operand, static_cast<const T*>(inputs[i]), begin, n,
               reinterpret_cast<T*>(scratch[i].data()));
      });
      blocks[i] = scratch[i].data();
    }
    plan.apply(blocks.data(), static_cast<std::byte*>(out) + begin * plan.out_bytes, n);
  }
}

Result<Shape> broadcast_shape(const Operation& o, InputTypes in) {
  Shape out;
  for (const TensorType& type : in) {
    if (type.shape.size() > out.size()) {
      out.insert(out.begin(), type.shape.size() - out.size(), int64_t{1});
    }
    const size_t skipped = out.size() - type.shape.size();
    for (size_t i = 0; i < type.shape.size(); ++i) {
      int64_t& extent = out[skipped + i];
      if (extent != type.shape[i] && extent != 1 && type.shape[i] != 1) {
        return reject(o, "shapes " + to_string(in[0].shape) + " and " + to_string(type.shape) +
                             " do not broadcast");
      }
      if (extent == 1) extent = type.shape[i];
    }
  }
  return out;
}

}  // namespace

Result<Types> infer_pointwise(const Operation& o, InputTypes in) {
  const ScalarFn fn = *parse_scalar_fn(o.name);
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, static_cast<size_t>(arity(fn))));
  KILN_ASSIGN_OR_RETURN(Shape shape, broadcast_shape(o, in));
  const bool where = fn == ScalarFn::kWhere;
  if (where) KILN_RETURN_IF_ERROR(expect_dtype(o, in, 0, DType::kBool));
  const DType dtype = in[where ? 1 : 0].dtype;
  for (size_t i = where ? 2 : 1; fn != ScalarFn::kPow && i < in.size(); ++i) {
    KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, dtype));
  }
  return results(o, {{yields_bool(fn) ? DType::kBool : dtype, std::move(shape)}});
}

Result<KernelPtr> prepare_pointwise(const Prepare& p) {
  const ScalarFn fn = *parse_scalar_fn(p.operation.name);
  const BlockFn apply = find_block(fn, p.inputs);
  if (!apply) {
    return unsupported(p.operation, "there is no such function for type " +
                                        std::string(to_string(p.inputs[0].type.dtype)));
  }
  Plan plan = make_plan(p, apply);
  const bool in_place = plan.operands[0].dense && p.inputs[0].type == p.outputs[0];
  return make_kernel(
      [plan = std::move(plan)](Inputs in, Outputs out) {
        parallel_for(
            (plan.count + kBlock - 1) / kBlock, kBlock * 4,
            [&](int64_t first, int64_t last) { run_blocks(plan, in, out[0], first, last); });
      },
      0, in_place);
}

}  // namespace kiln::host
