/* The plugin ABI. Plain C. Append only: a new field goes at the end of a struct; readers check
 * struct_size before they touch a field that is not in version 1.
 *
 * A plugin library exports one symbol, kiln_plugin_query. A plugin has a build half (used by the
 * builder: types, support, candidates) and may have a run half (used by the engine when the plugin
 * must execute host code). A plugin that offers CUDA kernels has no run half: the builder compiles
 * the source and the engine runs it as an ordinary kernel launch. */
#ifndef KILN_PLUGINS_PLUGIN_ABI_H_
#define KILN_PLUGINS_PLUGIN_ABI_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define KILN_PLUGIN_ABI 1u
#define KILN_PLUGIN_MAX_RANK 16u

/* dtype numbers are those of kiln::DType (formats/tensor_type.h). Dense, row-major. data is null in
 * the build half. */
typedef struct kiln_tensor {
  uint32_t dtype;
  uint32_t rank;
  int64_t dims[KILN_PLUGIN_MAX_RANK];
  void* data;
} kiln_tensor;

/* The node's attributes as a JSON object, UTF-8, not terminated. */
typedef struct kiln_bytes {
  const void* data;
  size_t size;
} kiln_bytes;

typedef int32_t kiln_status; /* 0 is success */

/* What the caller offers to a plugin. report() keeps a copy of the message. */
typedef struct kiln_host {
  uint32_t struct_size;
  uint32_t abi;
  void* self;
  void (*report)(void* self, const char* message);
} kiln_host;

/* A CUDA kernel candidate: source text and launch description. The host copies the strings when
 * candidate() returns; they must live until the same thread calls the plugin again. Arguments are
 * the inputs' pointers, then the outputs', then the workspace's. */
typedef struct kiln_kernel_candidate {
  uint32_t struct_size;
  const char* name;
  const char* source;
  const char* entry;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint64_t workspace_bytes;
  uint32_t programmatic_launch; /* 1: may be launched with programmatic dependent launch */
} kiln_kernel_candidate;

/* Build half: pure functions of attributes and types; any thread. */
typedef struct kiln_plugin_build {
  uint32_t struct_size;
  /* Fills dtype, rank and dims of the outputs. */
  kiln_status (*infer)(const kiln_host* host, kiln_bytes attributes, const kiln_tensor* inputs,
                       uint32_t input_count, kiln_tensor* outputs, uint32_t output_count);
  /* Number of kernel candidates for these types on that compute capability (90 = 9.0); may be null:
   * none. */
  uint32_t (*candidate_count)(kiln_bytes attributes, const kiln_tensor* inputs,
                              uint32_t input_count, const kiln_tensor* outputs,
                              uint32_t output_count, uint32_t compute_capability);
  kiln_status (*candidate)(const kiln_host* host, uint32_t index, kiln_bytes attributes,
                           const kiln_tensor* inputs, uint32_t input_count,
                           const kiln_tensor* outputs, uint32_t output_count,
                           uint32_t compute_capability, kiln_kernel_candidate* out);
  /* 1: output row i along axis 0 depends on row i of the inputs that have as many rows only, so a
   * batch may be padded; 0 or null: unknown. */
  int (*rows_independent)(kiln_bytes attributes);
} kiln_plugin_build;

/* Run half: host code. create() once an engine and node; enqueue() from many threads at once, each
 * with its own buffers: it must not write to state without its own lock. */
typedef struct kiln_plugin_run {
  uint32_t struct_size;
  kiln_status (*create)(const kiln_host* host, kiln_bytes attributes, const kiln_tensor* inputs,
                        uint32_t input_count, const kiln_tensor* outputs, uint32_t output_count,
                        void** state);
  void (*destroy)(void* state);
  uint64_t (*workspace_bytes)(void* state);
  /* stream is a cudaStream_t on the CUDA target and null on the host target. */
  kiln_status (*enqueue)(void* state, const kiln_host* host, const kiln_tensor* inputs,
                         uint32_t input_count, const kiln_tensor* outputs, uint32_t output_count,
                         void* workspace, void* stream);
} kiln_plugin_run;

typedef struct kiln_plugin {
  uint32_t struct_size;
  const char* name;    /* an ONNX node's op_type, with its domain: "com.example.Scale" */
  const char* version; /* "1"; the node's attribute plugin_version if it has one, else any */
  const kiln_plugin_build* build;
  const kiln_plugin_run* run; /* may be null */
} kiln_plugin;

typedef struct kiln_plugin_library {
  uint32_t struct_size;
  uint32_t abi;
  uint32_t count;
  const kiln_plugin* const* plugins;
} kiln_plugin_library;

/* Returns null if the library needs a newer host than host_abi. */
typedef const kiln_plugin_library* (*kiln_plugin_query_fn)(uint32_t host_abi);
#define KILN_PLUGIN_QUERY_SYMBOL "kiln_plugin_query"

#ifdef __cplusplus
}
#endif
#endif
