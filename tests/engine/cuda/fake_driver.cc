#include "tests/engine/cuda/fake_driver.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/engine/cuda/fake_graph.h"
#include "tests/engine/cuda/fake_tensor_maps.h"

namespace kiln::testing {
namespace {

constexpr size_t kDeviceBytes = size_t{1} << 27;

struct State {
  std::atomic<int> launches = 0, works = 0, copies = 0, rebound = 0, overlapping = 0;
  std::atomic<int> with_most_shared = 0;
  std::mutex mutex;
  std::map<CUdeviceptr, size_t> blocks;  // guarded by mutex
};

State& state() {
  static State instance;
  return instance;
}

// How many bytes lie from the address to its block's end; 0 outside of every block.
size_t bytes_from(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  const auto after = state().blocks.upper_bound(address);
  if (after == state().blocks.begin()) return 0;
  const auto& [start, bytes] = *std::prev(after);
  return address - start < bytes ? bytes - (address - start) : 0;
}

CUresult CUDAAPI ok_init(unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI driver_version(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI error_name(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI error_string(CUresult, const char** text) {
  *text = "made to fail";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_count(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_name(char* name, int bytes, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                       : 132;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_memory(size_t* bytes, CUdevice) {
  *bytes = kDeviceBytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI device_address(char* address, int bytes, CUdevice) {
  std::strncpy(address, "0000:0f:00.0", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI retain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&state());
  return CUDA_SUCCESS;
}
CUresult CUDAAPI release(CUdevice) { return CUDA_SUCCESS; }
CUresult CUDAAPI push(CUcontext) { return CUDA_SUCCESS; }
CUresult CUDAAPI pop(CUcontext*) { return CUDA_SUCCESS; }
CUresult CUDAAPI memory_info(size_t* free, size_t* total) {
  *total = kDeviceBytes;
  *free = *total - FakeDriver::instance().live_bytes();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI memory_alloc(CUdeviceptr* address, size_t bytes) {
  if (bytes > kDeviceBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xCB, bytes);
  *address = reinterpret_cast<CUdeviceptr>(block);
  const std::lock_guard lock(state().mutex);
  state().blocks[*address] = bytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI memory_free(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  if (state().blocks.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI host_alloc(void** address, size_t bytes, unsigned) {
  CUdeviceptr block = 0;
  const CUresult result = memory_alloc(&block, bytes);
  *address = reinterpret_cast<void*>(block);
  return result;
}
CUresult CUDAAPI host_free(void* address) {
  return memory_free(reinterpret_cast<CUdeviceptr>(address));
}
CUresult run(const Launch& launch);
CUresult put(CUstream stream, FakeNode node) {
  auto* fake = reinterpret_cast<FakeStream*>(stream);
  if (fake->capturing) {
    fake->graph->nodes.push_back(std::make_shared<FakeNode>(std::move(node)));
    return CUDA_SUCCESS;
  }
  ++state().works;
  return node.kernel ? run(*node.kernel) : node.work();
}
CUresult put(CUstream stream, Work work) { return put(stream, FakeNode{std::move(work), {}}); }
CUresult CUDAAPI memory_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!reinterpret_cast<FakeStream*>(stream)->capturing) ++state().copies;
  return put(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  });
}
CUresult CUDAAPI memory_copy_2d(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return put(stream, [copy = *copy] {
    for (size_t row = 0; row < copy.Height; ++row) {
      std::memmove(reinterpret_cast<void*>(copy.dstDevice + row * copy.dstPitch),
                   reinterpret_cast<void*>(copy.srcDevice + row * copy.srcPitch),
                   copy.WidthInBytes);
    }
    return CUDA_SUCCESS;
  });
}
CUresult CUDAAPI memory_set(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return put(stream, [=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return CUDA_SUCCESS;
  });
}
CUresult CUDAAPI module_load(CUmodule* module, const void*) {
  *module = reinterpret_cast<CUmodule>(new int(1));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI module_unload(CUmodule module) {
  delete reinterpret_cast<int*>(module);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI get_function(CUfunction* function, CUmodule, const char* name) {
  static FakeFunction twice{[](size_t i, const std::vector<float*>& p) { p[1][i] = 2 * p[0][i]; },
                            2};
  static FakeFunction add_row{
      [](size_t i, const std::vector<float*>& p) { p[2][i] = p[0][i] + p[1][i % 4]; }, 3};
  static FakeFunction mapped{[](size_t i, const std::vector<float*>& p) { p[3][i] = 2 * p[2][i]; },
                             2, 2};
  FakeFunction* found = std::strcmp(name, "twice") == 0          ? &twice
                        : std::strcmp(name, "add_row") == 0      ? &add_row
                        : std::strcmp(name, "twice_mapped") == 0 ? &mapped
                                                                 : nullptr;
  *function = reinterpret_cast<CUfunction>(found);
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult CUDAAPI set_function(CUfunction, CUfunction_attribute attribute, int value) {
  const bool shared = attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  if (shared && value == CU_SHAREDMEM_CARVEOUT_MAX_SHARED) ++state().with_most_shared;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI parameter_info(CUfunction function, size_t parameter, size_t* offset,
                                size_t* bytes) {
  const auto* fake = reinterpret_cast<FakeFunction*>(function);
  if (parameter >= fake->parameters + fake->maps) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;  // nobody asks
  *bytes = parameter < fake->parameters ? sizeof(CUdeviceptr) : sizeof(CUtensorMap);
  return CUDA_SUCCESS;
}
Launch launch_of(CUfunction function, size_t threads, void** parameters) {
  Launch launch{reinterpret_cast<FakeFunction*>(function), threads, {}};
  for (size_t i = 0; i < launch.function->parameters; ++i) {
    launch.addresses.push_back(*static_cast<float**>(parameters[i]));
  }
  for (size_t i = 0; i < launch.function->maps; ++i) {
    launch.addresses.push_back(address_of_map(parameters[launch.function->parameters + i]));
  }
  return launch;
}
CUresult run(const Launch& launch) {
  const auto& addresses = launch.addresses;
  for (float* address : addresses) {
    const size_t elements = address == addresses[1] && addresses.size() == 3 ? 4 : launch.threads;
    if (bytes_from(reinterpret_cast<CUdeviceptr>(address)) / sizeof(float) < elements) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  }
  for (size_t i = 0; i < launch.threads; ++i) launch.function->kernel(i, addresses);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI launch(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void**) {
  const size_t threads = size_t{config->gridDimX} * config->blockDimX;
  state().overlapping += config->numAttrs > 0 ? 1 : 0;
  return put(config->hStream, FakeNode{{}, launch_of(function, threads, parameters)});
}

CUresult CUDAAPI stream_create(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(new FakeStream());
  return CUDA_SUCCESS;
}
CUresult CUDAAPI stream_destroy(CUstream stream) {
  delete reinterpret_cast<FakeStream*>(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI stream_synchronize(CUstream) { return CUDA_SUCCESS; }
CUresult CUDAAPI stream_wait(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI begin_capture(CUstream stream, CUstreamCaptureMode) {
  auto* fake = reinterpret_cast<FakeStream*>(stream);
  fake->capturing = true;
  fake->graph = new FakeGraph();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI graph_destroy(CUgraph graph) {
  delete reinterpret_cast<FakeGraph*>(graph);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI end_capture(CUstream stream, CUgraph* graph) {
  auto* fake = reinterpret_cast<FakeStream*>(stream);
  FakeGraph* captured = std::exchange(fake->graph, nullptr);
  fake->capturing = false;
  *graph = reinterpret_cast<CUgraph>(captured);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI event_create(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new int(0));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI event_destroy(CUevent event) {
  delete reinterpret_cast<int*>(event);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI event_record(CUevent event, CUstream) {
  *reinterpret_cast<int*>(event) = state().works;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI event_synchronize(CUevent) { return CUDA_SUCCESS; }
CUresult CUDAAPI event_elapsed(float* ms, CUevent begin, CUevent end) {
  *ms = static_cast<float>(*reinterpret_cast<int*>(end) - *reinterpret_cast<int*>(begin));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI graph_instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  auto* made = new FakeExec();
  for (const auto& node : reinterpret_cast<FakeGraph*>(graph)->nodes) {
    made->nodes.push_back(node);
    if (node->kernel) made->launches[node.get()] = *node->kernel;
  }
  *exec = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                              const CUgraphNode** dependencies, const void**, size_t* count) {
  static thread_local CUgraphNode latest = nullptr;
  const auto* fake = reinterpret_cast<FakeStream*>(stream);
  if (!fake->capturing) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  *count = fake->graph->nodes.empty() ? 0 : 1;
  if (*count > 0) latest = reinterpret_cast<CUgraphNode>(fake->graph->nodes.back().get());
  *dependencies = &latest;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI node_type(CUgraphNode node, CUgraphNodeType* type) {
  const auto* fake = reinterpret_cast<FakeNode*>(node);
  *type = fake->kernel ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEMCPY;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* to) {
  auto& launches = reinterpret_cast<FakeExec*>(exec)->launches;
  const auto found = launches.find(reinterpret_cast<FakeNode*>(node));
  if (found == launches.end()) return CUDA_ERROR_INVALID_VALUE;
  ++state().rebound;
  found->second = launch_of(to->func, size_t{to->gridDimX} * to->blockDimX, to->kernelParams);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI pointer_attribute(void* value, CUpointer_attribute, CUdeviceptr address) {
  if (bytes_from(address) == 0) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(value) = 0;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI graph_upload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult CUDAAPI graph_launch(CUgraphExec exec, CUstream) {
  ++state().launches;
  const auto& fake = *reinterpret_cast<FakeExec*>(exec);
  for (const auto& node : fake.nodes) {
    ++state().works;
    const CUresult result = node->kernel ? run(fake.launches.at(node.get())) : node->work();
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
CUresult CUDAAPI exec_destroy(CUgraphExec exec) {
  delete reinterpret_cast<FakeExec*>(exec);
  return CUDA_SUCCESS;
}

}  // namespace

FakeDriver& FakeDriver::instance() {
  static FakeDriver driver;
  return driver;
}

void FakeDriver::reset() {
  state().launches = state().copies = state().rebound = state().overlapping = 0;
  state().with_most_shared = 0;
  encoded_maps().clear();
}
std::vector<std::vector<uint64_t>> FakeDriver::maps() const { return encoded_maps(); }
int FakeDriver::launches() const { return state().launches; }
int FakeDriver::copies() const { return state().copies; }
int FakeDriver::rebound() const { return state().rebound; }
int FakeDriver::with_most_shared() const { return state().with_most_shared; }
int FakeDriver::overlapping() const { return state().overlapping; }
uint64_t FakeDriver::live_bytes() const {
  const std::lock_guard lock(state().mutex);
  uint64_t bytes = 0;
  for (const auto& [address, size] : state().blocks) bytes += size;
  return bytes;
}

std::shared_ptr<FakeLibraries> FakeDriver::libraries() const {
  auto libraries = std::make_shared<FakeLibraries>();
  cuda::DriverApi& api = libraries->driver_api.emplace();
  api.init = ok_init;
  api.driver_get_version = driver_version;
  api.get_error_name = error_name;
  api.get_error_string = error_string;
  api.device_get_count = device_count;
  api.device_get = device_get;
  api.device_get_name = device_name;
  api.device_get_attribute = device_attribute;
  api.device_total_mem = device_memory;
  api.device_get_pci_bus_id = device_address;
  api.primary_ctx_retain = retain;
  api.primary_ctx_release = release;
  api.ctx_push_current = push;
  api.ctx_pop_current = pop;
  api.mem_get_info = memory_info;
  api.mem_alloc = memory_alloc;
  api.mem_free = memory_free;
  api.mem_host_alloc = host_alloc;
  api.mem_free_host = host_free;
  api.memcpy_async = memory_copy;
  api.pointer_get_attribute = pointer_attribute;
  api.memcpy_2d_async = memory_copy_2d;
  api.memset_async = memory_set;
  api.module_load_data = module_load;
  api.module_unload = module_unload;
  api.module_get_function = get_function;
  api.func_set_attribute = set_function;
  api.launch_kernel_ex = launch;
  api.func_get_param_info = parameter_info;
  api.tensor_map_encode_tiled = encode_map;
  api.stream_create = stream_create;
  api.stream_destroy = stream_destroy;
  api.stream_synchronize = stream_synchronize;
  api.stream_wait_event = stream_wait;
  api.stream_begin_capture = begin_capture;
  api.stream_end_capture = end_capture;
  api.event_create = event_create;
  api.event_destroy = event_destroy;
  api.event_record = event_record;
  api.event_synchronize = event_synchronize;
  api.event_elapsed_time = event_elapsed;
  api.graph_destroy = graph_destroy;
  api.graph_instantiate = graph_instantiate;
  api.graph_upload = graph_upload;
  api.graph_launch = graph_launch;
  api.graph_exec_destroy = exec_destroy;
  api.graph_node_get_type = node_type;
  api.graph_exec_set_kernel = set_kernel;
  api.stream_get_capture_info = capture_info;
  return libraries;
}

}  // namespace kiln::testing
