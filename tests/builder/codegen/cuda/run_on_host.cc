#include "tests/builder/codegen/cuda/run_on_host.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "builder/codegen/cuda/prelude.h"
#include "engine/host_kernels.h"
#include "tests/environment.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

TensorType type_of(const loop::Buffer& buffer) { return {buffer.dtype, {buffer.elements}}; }

std::string number(size_t value) { return std::to_string(value); }

// run_<item>_<launch>(buffers, blocks, threads, cluster) for each launch.
std::string text_of(const std::vector<HostProgram::Item>& items) {
  std::ifstream primitives("tests/builder/codegen/cuda/host_primitives.cuh");
  std::string text(std::istreambuf_iterator<char>(primitives), {});
  text += std::string(device_functions());
  for (size_t i = 0; i < items.size(); ++i) {
    const CudaSource& source = items[i].source;
    text += "namespace k" + number(i) + " {\n" + source.text + "}\n";
    const bool barriers = source.text.find("reduce_") != std::string::npos ||
                          source.text.find("__syncthreads") != std::string::npos;
    const size_t pointers = items[i].kernel.buffers.size() + (source.workspace_bytes > 0 ? 1 : 0);
    for (size_t l = 0; l < source.launches.size(); ++l) {
      std::string arguments;
      for (size_t b = 0; b < pointers; ++b) {
        arguments +=
            (b > 0 ? ", static_cast<char*>(b[" : "static_cast<char*>(b[") + number(b) + "])";
      }
      text +=
          "extern \"C\" void run_" + number(i) + "_" + number(l) +
          "(void** b, uint64_t blocks, unsigned threads, unsigned cluster) {\n  run_grid(blocks, "
          "threads, cluster, " +
          (barriers ? "true" : "false") + ", [b] { k" + number(i) +
          "::" + source.launches[l].entry + "(" + arguments + "); });\n}\n";
    }
  }
  text +=
      "extern \"C\" void set_memory(void** b, const size_t* bytes, const bool* writable,\n"
      "                           size_t count) {\n"
      "  memories.clear();\n  fault.clear();\n"
      "  for (size_t i = 0; i < count; ++i) {\n"
      "    memories.push_back({static_cast<const char*>(b[i]), bytes[i], writable[i]});\n  }\n}\n"
      "extern \"C\" const char* get_fault() { return fault.c_str(); }\n";
  return text;
}

// A buffer on a 256-byte boundary.
struct Aligned {
  explicit Aligned(size_t size)
      : bytes(size), data(std::aligned_alloc(256, (size + 511) / 256 * 256), &std::free) {
    std::memset(data.get(), 0xA5, (size + 511) / 256 * 256);
  }
  size_t bytes;
  std::unique_ptr<void, void (*)(void*)> data;
};

}  // namespace

Result<HostProgram> HostProgram::compile(const std::vector<Item>& items) {
  std::string folder = (fs::temp_directory_path() / "kiln-host-program-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Error{ErrorCode::kIo, "no temporary folder"};
  const fs::path source = fs::path(folder) / "kernels.cc", library = fs::path(folder) / "lib.so";
  std::ofstream(source) << text_of(items);
  const std::string command =
      testing::compiler() + " -std=c++20 -O1 -w -ffp-contract=off -fPIC -shared -o " +
      library.string() + " " + source.string() + " > " + folder + "/log 2>&1";
  const int status = std::system(command.c_str());
  HostProgram program;
  program.items_ = items;
  if (status == 0) {
    program.library_ = std::shared_ptr<void>(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL),
                                             [](void* l) { return l == nullptr || dlclose(l); });
  }
  if (program.library_ == nullptr) {
    std::ifstream log(fs::path(folder) / "log");
    return Error{ErrorCode::kInternal,
                 "in " + folder + ": " + std::string(std::istreambuf_iterator<char>(log), {})};
  }
  fs::remove_all(folder);
  return program;
}

Result<std::vector<Bytes>> HostProgram::run(size_t item, const std::vector<Bytes>& inputs) const {
  return run(item, inputs, std::nullopt);
}

Result<std::vector<Bytes>> HostProgram::run_overwriting(size_t item,
                                                        const std::vector<Bytes>& inputs,
                                                        size_t input) const {
  return run(item, inputs, input);
}

Result<std::vector<Bytes>> HostProgram::run(size_t item, const std::vector<Bytes>& inputs,
                                            std::optional<size_t> overwritten) const {
  const Item& it = items_[item];
  std::vector<Aligned> memory;
  std::vector<void*> pointers;
  std::vector<size_t> sizes;
  auto writable = std::make_unique<bool[]>(it.kernel.buffers.size() + 1);
  const auto add = [&](size_t bytes, bool write) {
    writable[memory.size()] = write;
    memory.emplace_back(bytes);
    pointers.push_back(memory.back().data.get());
    sizes.push_back(bytes);
  };
  for (size_t b = 0; b < it.kernel.buffers.size(); ++b) {
    const loop::Buffer& buffer = it.kernel.buffers[b];
    add(static_cast<size_t>(type_of(buffer).bytes()), buffer.output);
    if (!buffer.output) std::ranges::copy(inputs[b], static_cast<std::byte*>(pointers[b]));
  }
  if (overwritten) {
    std::ranges::copy(inputs[*overwritten], static_cast<std::byte*>(pointers[inputs.size()]));
    pointers[*overwritten] = pointers[inputs.size()];
    writable[*overwritten] = true;
  }
  if (it.source.workspace_bytes > 0) add(it.source.workspace_bytes, true);
  const auto find = [&](const std::string& name) { return dlsym(library_.get(), name.c_str()); };
  reinterpret_cast<void (*)(void**, const size_t*, const bool*, size_t)>(find("set_memory"))(
      pointers.data(), sizes.data(), writable.get(), pointers.size());
  for (size_t l = 0; l < it.source.launches.size(); ++l) {
    const CudaLaunch& launch = it.source.launches[l];
    reinterpret_cast<void (*)(void**, uint64_t, unsigned, unsigned)>(
        find("run_" + number(item) + "_" + number(l)))(pointers.data(), launch.blocks,
                                                       launch.threads, launch.cluster);
  }
  const std::string fault = reinterpret_cast<const char* (*)()>(find("get_fault"))();
  if (!fault.empty()) return Error{ErrorCode::kInternal, fault};
  std::vector<Bytes> outputs;
  for (size_t b = 0; b < it.kernel.buffers.size(); ++b) {
    if (!it.kernel.buffers[b].output) continue;
    const auto* data = static_cast<const std::byte*>(pointers[b]);
    outputs.emplace_back(data, data + sizes[b]);
  }
  return outputs;
}

Result<std::vector<Bytes>> interpret(const loop::LoopKernel& kernel,
                                     const std::vector<Bytes>& inputs) {
  std::vector<TensorType> in, out;
  std::vector<const void*> from;
  std::vector<Bytes> outputs;
  for (const loop::Buffer& buffer : kernel.buffers)
    (buffer.output ? out : in).push_back(type_of(buffer));
  for (const Bytes& input : inputs) from.push_back(input.data());
  for (const TensorType& type : out) {
    outputs.emplace_back(static_cast<size_t>(type.bytes()), std::byte{0xA5});
  }
  std::vector<void*> to;
  for (Bytes& output : outputs) to.push_back(output.data());
  const Operation operation = Operation{"loop", {}}.set("kernel", loop::encode(kernel));
  KILN_RETURN_IF_ERROR(run_host_operation(operation, in, from, out, to));
  return outputs;
}

}  // namespace kiln::codegen
