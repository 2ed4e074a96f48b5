#include "engine/host/onednn/primitive_kernel.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace kiln::host {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

class PrimitiveKernel final : public HostKernel {
 public:
  explicit PrimitiveKernel(PrimitiveParts parts) : parts_(std::move(parts)) {
    dnnl::stream stream(parts_.engine);
    for (Operand& operand : parts_.inputs) {
      if (!operand.constant || operand.given == operand.wanted) {
        operand.constant = nullptr;
        reordered_.emplace_back();
        continue;
      }
      dnnl::memory from(operand.given, parts_.engine, const_cast<void*>(operand.constant));
      reordered_.emplace_back(operand.wanted, parts_.engine);
      dnnl::reorder(from, reordered_.back()).execute(stream, from, reordered_.back());
    }
    stream.wait();
    workspace_bytes_ = aligned(parts_.scratchpad.get_size());
    for (const Operand& operand : parts_.inputs) {
      if (moves(operand)) workspace_bytes_ += aligned(operand.wanted.get_size());
    }
    if (moves(parts_.output)) workspace_bytes_ += aligned(parts_.output.wanted.get_size());
  }

  uint64_t workspace_bytes() const override { return workspace_bytes_; }

  Result<> run(Inputs inputs, Outputs outputs, void* workspace) const override try {
    dnnl::stream stream(parts_.engine);
    auto* free = static_cast<std::byte*>(workspace);
    const auto take = [&](const dnnl::memory::desc& desc) {
      dnnl::memory memory(desc, parts_.engine, free);
      free += aligned(desc.get_size());
      return memory;
    };
    std::unordered_map<int, dnnl::memory> arguments;
    arguments[DNNL_ARG_SCRATCHPAD] = take(parts_.scratchpad);
    for (size_t i = 0; i < parts_.inputs.size(); ++i) {
      const Operand& operand = parts_.inputs[i];
      dnnl::memory& memory = arguments[operand.argument];
      if (operand.constant) {
        memory = reordered_[i];
        continue;
      }
      memory = dnnl::memory(operand.given, parts_.engine, const_cast<void*>(inputs[i]));
      if (!moves(operand)) continue;
      dnnl::memory wanted = take(operand.wanted);
      dnnl::reorder(memory, wanted).execute(stream, memory, wanted);
      memory = wanted;
    }
    dnnl::memory result(parts_.output.given, parts_.engine, outputs[0]);
    dnnl::memory computed = moves(parts_.output) ? take(parts_.output.wanted) : result;
    arguments[DNNL_ARG_DST] = computed;
    parts_.primitive.execute(stream, arguments);
    if (moves(parts_.output)) {
      dnnl::reorder(computed, result).execute(stream, computed, result);
    }
    stream.wait();
    return Ok();
  } catch (const dnnl::error& error) {
    return Error{ErrorCode::kInternal, std::string("onednn failed: ") + error.message};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "onednn ran out of memory"};
  }

 private:
  static bool moves(const Operand& operand) {
    return !operand.constant && operand.given != operand.wanted;
  }

  PrimitiveParts parts_;
  std::vector<dnnl::memory> reordered_;  // one an input; empty where nothing was reordered
  uint64_t workspace_bytes_ = 0;
};

}  // namespace

KernelPtr make_primitive_kernel(PrimitiveParts parts) {
  return std::make_unique<PrimitiveKernel>(std::move(parts));
}

dnnl::primitive_attr primitive_attributes(const std::vector<PostOp>& ops,
                                          const dnnl::memory::desc& result) {
  dnnl::post_ops list;
  for (const PostOp& op : ops) {
    if (op.kind == PostOp::Kind::kEltwise) {
#if DNNL_VERSION_MAJOR >= 3
      list.append_eltwise(op.algorithm, op.alpha, op.beta);
#else
      list.append_eltwise(1.0F, op.algorithm, op.alpha, op.beta);
#endif
    } else if (op.kind == PostOp::Kind::kAdd) {
      list.append_binary(dnnl::algorithm::binary_add, result);
    }
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(list);
  return attributes;
}

void append_post_operands(const std::vector<PostOp>& ops, const dnnl::memory::desc& result,
                          PrimitiveParts& parts) {
  int position = 0;  // among the primitive's post-ops
  for (const PostOp& op : ops) {
    if (op.kind == PostOp::Kind::kBias) continue;
    if (op.kind == PostOp::Kind::kAdd) {
      parts.inputs.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, result, result});
    }
    ++position;
  }
}

dnnl::memory::desc dense_desc(const Shape& shape) {
  return {shape, dnnl::memory::data_type::f32, row_major_strides(shape)};
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::memory::dims extents = desc.get_dims();
#else
  const dnnl::memory::dims extents = desc.dims();
#endif
  return {extents, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

Result<KernelPtr> guarded(const Operation& operation,
                          const std::function<Result<KernelPtr>()>& make) try {
  return make();
} catch (const dnnl::error& error) {
  return unsupported(operation, std::string("onednn refused: ") + error.message);
}

Result<> refuse_oversized(const Prepare& p) {
  constexpr int64_t kMostExtent = 1 << 28, kMostElements = int64_t{1} << 33;
  std::vector<TensorType> types(p.outputs.begin(), p.outputs.end());
  for (const HostInput& in : p.inputs) types.push_back(in.type);
  for (const TensorType& type : types) {
    const bool long_axis = std::any_of(type.shape.begin(), type.shape.end(),
                                       [](int64_t extent) { return extent > kMostExtent; });
    if (!long_axis && type.elements() <= kMostElements) continue;
    return unsupported(p.operation, to_string(type) + " is too large for onednn");
  }
  return Ok();
}

Result<> refuse_reference(const Operation& operation, const char* implementation) {
  if (std::string_view(implementation).find("ref") == std::string_view::npos) return Ok();
  return unsupported(operation, std::string("onednn has only its slow implementation '") +
                                    implementation + "' for this");
}

}  // namespace kiln::host
