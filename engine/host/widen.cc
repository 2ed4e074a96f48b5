#include "engine/host/widen.h"

#include <algorithm>

#include "engine/host/dtype_conversion.h"

namespace kiln::host {
namespace {

DType widened(DType dtype, Storage storage) {
  if (dtype == DType::kI4) return DType::kI8;
  if (dtype == DType::kU4) return DType::kU8;
  const bool narrow = is_float(dtype) && bits_of(dtype) < 32;
  return storage == Storage::kNative && narrow ? DType::kF32 : dtype;
}

// A tensor of the inner kernel: the caller's buffer, a piece of the workspace, or, for a constant,
// a converted copy that is made once.
struct Buffer {
  DType outer, inner;
  int64_t elements;
  uint64_t offset = 0;
  std::vector<std::byte> constant;

  bool converts() const { return outer != inner; }
  int64_t inner_bytes() const { return (elements * bits_of(inner) + 7) / 8; }
};

class WidenedKernel final : public HostKernel {
 public:
  WidenedKernel(KernelPtr inner, std::vector<Buffer> inputs, std::vector<Buffer> outputs)
      : inner_(std::move(inner)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    inner_workspace_ = place(inner_->workspace_bytes());
    for (auto* buffers : {&inputs_, &outputs_}) {
      for (Buffer& b : *buffers) {
        if (b.converts() && b.constant.empty()) b.offset = place(b.inner_bytes());
      }
    }
  }

  uint64_t workspace_bytes() const override { return workspace_bytes_; }

  Result<> run(Inputs inputs, Outputs outputs, void* workspace) const override {
    auto* base = static_cast<std::byte*>(workspace);
    std::vector<const void*> in(inputs.begin(), inputs.end());
    std::vector<void*> out(outputs.begin(), outputs.end());
    for (size_t i = 0; i < in.size(); ++i) {
      const Buffer& b = inputs_[i];
      if (!b.converts()) continue;
      in[i] = b.constant.empty() ? base + b.offset : b.constant.data();
      if (b.constant.empty()) convert(b.outer, inputs[i], b.inner, base + b.offset, b.elements);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (outputs_[i].converts()) out[i] = base + outputs_[i].offset;
    }
    KILN_RETURN_IF_ERROR(inner_->run(in, out, base + inner_workspace_));
    for (size_t i = 0; i < out.size(); ++i) {
      const Buffer& b = outputs_[i];
      if (b.converts()) convert_back(b, out[i], outputs[i]);
    }
    return Ok();
  }

 private:
  static void convert_back(const Buffer& b, const void* from, void* to) {
    // The unused half of the last byte is zero, so that equal tensors have equal bytes.
    if (bits_of(b.outer) == 4 && b.elements % 2 == 1) {
      static_cast<std::byte*>(to)[b.elements / 2] = std::byte{0};
    }
    convert(b.inner, from, b.outer, to, b.elements);
  }

  uint64_t place(uint64_t bytes) {
    const uint64_t offset = workspace_bytes_;
    workspace_bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }

  KernelPtr inner_;
  std::vector<Buffer> inputs_, outputs_;
  uint64_t workspace_bytes_ = 0, inner_workspace_ = 0;
};

}  // namespace

Result<KernelPtr> prepare_stored(const Prepare& p, PrepareFn prepare, Storage storage) {
  if (storage == Storage::kAny) return prepare(p);
  std::vector<HostInput> inputs(p.inputs.begin(), p.inputs.end());
  Types outputs(p.outputs.begin(), p.outputs.end());
  std::vector<Buffer> in, out;
  for (HostInput& input : inputs) {
    in.push_back({input.type.dtype, widened(input.type.dtype, storage), input.type.elements()});
    if (!in.back().converts()) continue;
    input.type.dtype = in.back().inner;
    if (!input.constant) continue;
    Buffer& buffer = in.back();
    buffer.constant.resize(buffer.inner_bytes());
    convert(buffer.outer, input.constant, buffer.inner, buffer.constant.data(), buffer.elements);
    input.constant = buffer.constant.data();  // stays where it is when the buffer moves
  }
  for (TensorType& type : outputs) {
    out.push_back({type.dtype, widened(type.dtype, storage), type.elements()});
    type.dtype = out.back().inner;
  }
  const auto converts = [](const Buffer& b) { return b.converts(); };
  const bool needed =
      std::any_of(in.begin(), in.end(), converts) || std::any_of(out.begin(), out.end(), converts);
  if (!needed) return prepare(p);
  KILN_ASSIGN_OR_RETURN(KernelPtr inner, prepare({p.operation, inputs, outputs}));
  return KernelPtr(
      std::make_unique<WidenedKernel>(std::move(inner), std::move(in), std::move(out)));
}

}  // namespace kiln::host
