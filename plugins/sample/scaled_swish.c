/* com.example.ScaledSwish: y = scale * x / (1 + exp(-beta * x)), f32, any shape. A sample of both
 * halves of the plugin ABI: host code for the host target and a CUDA kernel for the builder.
 * Attributes: scale (default 1), beta (default 1). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/plugin_abi.h"

#define EXPORT __attribute__((visibility("default")))
#define DTYPE_F32 0u

typedef struct parameters {
  float scale, beta;
  int64_t elements;
} parameters;

/* The number behind "name": in a flat JSON object; the fallback if it is not there. */
static float number_attribute(kiln_bytes json, const char* name, float fallback) {
  char text[1024], quoted[64];
  if (json.size >= sizeof(text)) return fallback;
  memcpy(text, json.data, json.size);
  text[json.size] = '\0';
  snprintf(quoted, sizeof(quoted), "\"%s\"", name);
  const char* at = strstr(text, quoted);
  if (at == NULL) return fallback;
  at += strlen(quoted);
  at += strspn(at, " \t\r\n:");
  char* end = NULL;
  const float value = strtof(at, &end);
  return end == at ? fallback : value;
}

static int64_t element_count(const kiln_tensor* tensor) {
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  return count;
}

static parameters read_parameters(kiln_bytes attributes, const kiln_tensor* x) {
  const parameters result = {number_attribute(attributes, "scale", 1.0f),
                             number_attribute(attributes, "beta", 1.0f), element_count(x)};
  return result;
}

static kiln_status refuse(const kiln_host* host, const char* message) {
  host->report(host->self, message);
  return 1;
}

static kiln_status infer(const kiln_host* host, kiln_bytes attributes, const kiln_tensor* inputs,
                         uint32_t input_count, kiln_tensor* outputs, uint32_t output_count) {
  (void)attributes;
  if (input_count != 1 || output_count != 1) {
    return refuse(host, "ScaledSwish has one input and one output");
  }
  if (inputs[0].dtype != DTYPE_F32) return refuse(host, "ScaledSwish takes f32");
  outputs[0] = inputs[0];
  return 0;
}

static uint32_t candidate_count(kiln_bytes attributes, const kiln_tensor* inputs,
                                uint32_t input_count, const kiln_tensor* outputs,
                                uint32_t output_count, uint32_t compute_capability) {
  (void)attributes, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
  return compute_capability >= 50 ? 1 : 0;
}

static kiln_status candidate(const kiln_host* host, uint32_t index, kiln_bytes attributes,
                             const kiln_tensor* inputs, uint32_t input_count,
                             const kiln_tensor* outputs, uint32_t output_count,
                             uint32_t compute_capability, kiln_kernel_candidate* out) {
  (void)index, (void)input_count, (void)outputs, (void)output_count, (void)compute_capability;
  static _Thread_local char source[1024];
  const parameters p = read_parameters(attributes, &inputs[0]);
  const int length =
      snprintf(source, sizeof(source),
               "extern \"C\" __global__ void scaled_swish(const float* x, float* y, void*) {\n"
               "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
               "  if (i < %lldll) y[i] = %.9ef * x[i] / (1.0f + expf(-(%.9ef) * x[i]));\n"
               "}\n",
               (long long)p.elements, (double)p.scale, (double)p.beta);
  if (length < 0 || (size_t)length >= sizeof(source)) return refuse(host, "source is too long");
  const int64_t blocks = (p.elements + 255) / 256;
  if (blocks > INT32_MAX) return refuse(host, "too many elements for one launch");
  out->name = "one element a thread";
  out->source = source;
  out->entry = "scaled_swish";
  out->grid[0] = (uint32_t)(blocks > 0 ? blocks : 1);
  out->block[0] = 256;
  out->grid[1] = out->grid[2] = out->block[1] = out->block[2] = 1;
  return 0;
}

static int rows_independent(kiln_bytes attributes) {
  (void)attributes;
  return 1;
}

static kiln_status create(const kiln_host* host, kiln_bytes attributes, const kiln_tensor* inputs,
                          uint32_t input_count, const kiln_tensor* outputs, uint32_t output_count,
                          void** state) {
  /* An engine file may claim any types. */
  kiln_tensor expected;
  const kiln_status status = infer(host, attributes, inputs, input_count, &expected, output_count);
  if (status != 0) return status;
  if (outputs[0].dtype != DTYPE_F32 || element_count(&outputs[0]) != element_count(&inputs[0])) {
    return refuse(host, "output and input differ in type");
  }
  parameters* p = malloc(sizeof(*p));
  if (p == NULL) return refuse(host, "out of memory");
  *p = read_parameters(attributes, &inputs[0]);
  *state = p;
  return 0;
}

static void destroy(void* state) { free(state); }

static kiln_status enqueue(void* state, const kiln_host* host, const kiln_tensor* inputs,
                           uint32_t input_count, const kiln_tensor* outputs, uint32_t output_count,
                           void* workspace, void* stream) {
  (void)input_count, (void)output_count, (void)workspace;
  if (stream != NULL) return refuse(host, "the host code takes no stream");
  const parameters* p = state;
  const float* x = inputs[0].data;
  float* y = outputs[0].data;
  for (int64_t i = 0; i < p->elements; ++i) {
    y[i] = p->scale * x[i] / (1.0f + expf(-p->beta * x[i]));
  }
  return 0;
}

static const kiln_plugin_build kBuild = {.struct_size = sizeof(kBuild),
                                         .infer = infer,
                                         .candidate_count = candidate_count,
                                         .candidate = candidate,
                                         .rows_independent = rows_independent};

static const kiln_plugin_run kRun = {
    .struct_size = sizeof(kRun), .create = create, .destroy = destroy, .enqueue = enqueue};

static const kiln_plugin kScaledSwish = {.struct_size = sizeof(kScaledSwish),
                                         .name = "com.example.ScaledSwish",
                                         .version = "1",
                                         .build = &kBuild,
                                         .run = &kRun};

static const kiln_plugin* const kPlugins[] = {&kScaledSwish};

static const kiln_plugin_library kLibrary = {
    .struct_size = sizeof(kLibrary), .abi = KILN_PLUGIN_ABI, .count = 1, .plugins = kPlugins};

EXPORT const kiln_plugin_library* kiln_plugin_query(uint32_t host_abi) {
  return host_abi >= KILN_PLUGIN_ABI ? &kLibrary : NULL;
}
