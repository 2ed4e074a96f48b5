// Any bytes are an error or a kernel that runs within its buffers.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "engine/host/loop/prepare_loop.h"
#include "formats/loop_ir/analysis.h"

namespace {

using kiln::TensorType;

constexpr int64_t kMaxBytes = 1 << 20;
constexpr int64_t kMaxPoints = 1 << 14;

// Buffers of exactly their size, so that the sanitizer sees each step outside.
struct Buffer {
  explicit Buffer(int64_t bytes) : data(std::malloc(static_cast<size_t>(bytes))), size(bytes) {
    for (int64_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(i);
  }
  ~Buffer() { std::free(data); }
  Buffer(Buffer&& other) noexcept : data(other.data), size(other.size) { other.data = nullptr; }
  Buffer& operator=(Buffer&&) = delete;
  void* data;
  int64_t size;
};

void run(const kiln::loop::LoopKernel& kernel) {
  std::vector<TensorType> inputs, outputs;
  std::vector<Buffer> buffers;
  int64_t total = 0;
  for (const kiln::loop::Buffer& buffer : kernel.buffers) {
    const TensorType type{buffer.dtype, {buffer.elements}};
    if (type.bytes() > kMaxBytes - total) return;
    total += type.bytes();
    (buffer.output ? outputs : inputs).push_back(type);
  }
  const auto points = kiln::loop::points(kernel, ~kiln::loop::DimSet{0});
  if (!points || *points * static_cast<int64_t>(kernel.exprs.size()) > kMaxPoints * 16) return;
  auto prepared = kiln::host::prepare_loop_kernel(kernel, inputs, outputs);
  if (!prepared.ok()) std::abort();  // decode has verified it
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const TensorType& type : inputs) {
    buffers.emplace_back(type.bytes());
    in.push_back(buffers.back().data);
  }
  for (const TensorType& type : outputs) {
    buffers.emplace_back(type.bytes());
    out.push_back(buffers.back().data);
  }
  void* workspace = std::aligned_alloc(64, (*prepared)->workspace_bytes() + 64);
  const auto done = (*prepared)->run(in, out, workspace);
  if (!done.ok() && done.error().message.empty()) std::abort();
  std::free(workspace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto kernel = kiln::loop::decode_loop_kernel(std::as_bytes(std::span(data, size)));
  if (kernel.ok()) run(*kernel);
  return 0;
}
