// A cuBLASLt without a GPU: descriptors are records of what was set, and a matmul is what the
// library's documentation says, in plain loops over column-major matrices in host memory.
#pragma once
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "engine/cuda/library_handle.h"
#include "tests/engine/cuda/fake_libraries.h"

namespace kiln::testing {

struct FakeLayout {
  cudaDataType type;
  int32_t count;
  uint64_t rows, columns;
  int64_t leading, stride;
};
struct FakeDescription {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose_a, transpose_b;
  uint32_t epilogue;
  const void* bias;
  const void* d_scale;  // of a result of codes
  int8_t fast;
};
struct FakeAlgorithm {
  uint32_t config[9];
  uint32_t hidden;  // what no field shows
};
static_assert(sizeof(FakeLayout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(FakeDescription) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(FakeAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class Fake, class Opaque>
Fake& fake(Opaque* opaque) {
  return *reinterpret_cast<Fake*>(opaque);
}

inline double read_element(cudaDataType type, const void* data, uint64_t i) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(data)[i];
    case CUDA_R_8F_E4M3: {
      const uint8_t bits = static_cast<const uint8_t*>(data)[i];
      const int exponent = bits >> 3 & 15, mantissa = bits & 7;
      if ((bits & 0x7f) == 0x7f) return std::nan("");
      const double size =
          exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      return bits & 0x80 ? -size : size;
    }
    case CUDA_R_16F:
      return static_cast<double>(static_cast<const _Float16*>(data)[i]);
    case CUDA_R_16BF: {
      const uint32_t bits = uint32_t{static_cast<const uint16_t*>(data)[i]} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    default:
      return static_cast<const float*>(data)[i];
  }
}

inline void write_element(cudaDataType type, void* data, uint64_t i, double value) {
  if (type == CUDA_R_64F) {
    static_cast<double*>(data)[i] = value;
  } else if (type == CUDA_R_16F) {
    static_cast<_Float16*>(data)[i] = static_cast<_Float16>(value);
  } else if (type == CUDA_R_16BF) {
    const auto wide = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
  } else if (type == CUDA_R_8F_E4M3) {
    // The nearest code, of two as near the even one; codes grow with what they stand for.
    const double size = std::min(std::abs(value), 448.0);
    uint8_t best = 0;
    for (uint8_t code = 1; code < 0x7f; ++code) {
      const double off = std::abs(read_element(type, &code, 0) - size);
      const double least = std::abs(read_element(type, &best, 0) - size);
      if (off < least || (off == least && code % 2 == 0)) best = code;
    }
    static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(best | (value < 0 ? 0x80 : 0));
  } else {
    static_cast<float*>(data)[i] = static_cast<float>(value);
  }
}

// The functions have no argument of ours, so one fake at a time is current.
class FakeCublasLt {
 public:
  FakeCublasLt() { current() = this; }
  ~FakeCublasLt() { current() = nullptr; }

  cuda::CublasLtApi api() const;
  // A device whose libraries are this fake and a driver that does nothing.
  std::shared_ptr<const cuda::Device> device() const;

  size_t version = 130100;
  size_t workspace = 0;  // what algorithms ask for
  uint32_t hidden = 0;   // what the heuristics' algorithms hold beside their fields
  bool refuses = false;  // every algorithm
  std::atomic<int> matmuls = 0, fast_matmuls = 0;

 private:
  static FakeCublasLt*& current() {
    static FakeCublasLt* fake = nullptr;
    return fake;
  }
  static cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                               const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                               const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                               const void* c, cublasLtMatrixLayout_t, void* d,
                               cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*,
                               size_t, cudaStream_t);
  static void set_functions(cuda::CublasLtApi& api);
};

inline double fake_epilogue(uint32_t epilogue, double x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return std::max(x, 0.0);
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) == 0) return x;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

inline cublasStatus_t FakeCublasLt::matmul(
    cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
    cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  current()->matmuls += 1;
  const auto& to = fake<FakeDescription>(description);
  current()->fast_matmuls += to.fast;
  const auto &la = fake<FakeLayout>(a_layout), &lb = fake<FakeLayout>(b_layout);
  const auto &lc = fake<FakeLayout>(c_layout), &ld = fake<FakeLayout>(d_layout);
  const bool codes = ld.type == CUDA_R_8F_E4M3;
  if (codes && (lc.type != CUDA_R_16BF || c != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  const double scale = codes ? read_element(CUDA_R_32F, to.d_scale, 0) : 1;
  const uint64_t depth = to.transpose_a == CUBLAS_OP_N ? la.columns : la.rows;
  const double factor = read_element(to.scale, alpha, 0), old = read_element(to.scale, beta, 0);
  const auto element = [](const FakeLayout& l, const void* data, int32_t batch, uint64_t row,
                          uint64_t column, int32_t op) {
    if (op != CUBLAS_OP_N) std::swap(row, column);
    if (row >= l.rows || column >= l.columns) return std::nan("");
    return read_element(
        l.type, data,
        static_cast<uint64_t>(batch * l.stride) + row + column * static_cast<uint64_t>(l.leading));
  };
  for (int32_t batch = 0; batch < ld.count; ++batch) {
    for (uint64_t j = 0; j < ld.columns; ++j) {
      for (uint64_t i = 0; i < ld.rows; ++i) {
        double sum = 0;
        for (uint64_t k = 0; k < depth; ++k) {
          sum += element(la, a, batch, i, k, to.transpose_a) *
                 element(lb, b, batch, k, j, to.transpose_b);
        }
        sum *= factor;
        if (old != 0) sum += old * element(lc, c, batch, i, j, CUBLAS_OP_N);
        if ((to.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) sum += read_element(lc.type, to.bias, i);
        write_element(
            ld.type, d,
            static_cast<uint64_t>(batch * ld.stride) + i + j * static_cast<uint64_t>(ld.leading),
            scale * fake_epilogue(to.epilogue, sum));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

inline void FakeCublasLt::set_functions(cuda::CublasLtApi& api) {
  api.matmul_desc_init = [](cublasLtMatmulDesc_t to, size_t, cublasComputeType_t compute,
                            cudaDataType scale) {
    fake<FakeDescription>(to) = {
        compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
  };
  api.matmul_desc_set_attribute = [](cublasLtMatmulDesc_t to,
                                     cublasLtMatmulDescAttributes_t attribute, const void* value,
                                     size_t bytes) {
    auto& record = fake<FakeDescription>(to);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) std::memcpy(&record.transpose_a, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) std::memcpy(&record.transpose_b, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) std::memcpy(&record.epilogue, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_D_SCALE_POINTER) {
      std::memcpy(&record.d_scale, value, bytes);
    }
    if (attribute == CUBLASLT_MATMUL_DESC_FAST_ACCUM) std::memcpy(&record.fast, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) std::memcpy(&record.bias, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.matrix_layout_init = [](cublasLtMatrixLayout_t to, size_t, cudaDataType type, uint64_t rows,
                              uint64_t columns, int64_t leading) {
    fake<FakeLayout>(to) = {type, 1, rows, columns, leading, 0};
    return leading < static_cast<int64_t>(rows) ? CUBLAS_STATUS_INVALID_VALUE
                                                : CUBLAS_STATUS_SUCCESS;
  };
  api.matrix_layout_set_attribute = [](cublasLtMatrixLayout_t to,
                                       cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                       size_t bytes) {
    auto& record = fake<FakeLayout>(to);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) std::memcpy(&record.count, value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
      std::memcpy(&record.stride, value, bytes);
    }
    return CUBLAS_STATUS_SUCCESS;
  };
}

inline cuda::CublasLtApi FakeCublasLt::api() const {
  cuda::CublasLtApi api;
  set_functions(api);
  api.create = [](cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(0x10);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy = [](cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  api.get_version = [] { return current()->version; };
  api.get_status_name = [](cublasStatus_t) { return "FAKE_STATUS"; };
  api.get_status_string = [](cublasStatus_t) { return "as told"; };
  api.matmul = matmul;
  api.preference_init = [](cublasLtMatmulPreference_t, size_t) { return CUBLAS_STATUS_SUCCESS; };
  api.preference_set_attribute = [](cublasLtMatmulPreference_t,
                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                    size_t) { return CUBLAS_STATUS_SUCCESS; };
  api.algo_get_heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                              cublasLtMatmulHeuristicResult_t* results, int* count) {
    *count = std::min(wanted, 2);
    for (int i = 0; i < *count; ++i) {
      results[i] = {};
      auto& algorithm = fake<FakeAlgorithm>(&results[i].algo);
      algorithm = {{66, 20, 1, 0, 0, 0, 35, 0, 3 + static_cast<uint32_t>(i)}, current()->hidden};
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  api.algo_get_ids = [](cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int, int* ids, int* count) {
    ids[0] = 66;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.algo_init = [](cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                     cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                     cublasLtMatmulAlgo_t* algorithm) {
    fake<FakeAlgorithm>(algorithm) = {{static_cast<uint32_t>(id), 0, 1, 0, 0, 0, 0, 0, 0}, 0};
    return id == 66 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  };
  api.algo_check = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                      const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t* result) {
    result->workspaceSize = current()->workspace;
    return current()->refuses ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  };
  api.algo_config_set_attribute = [](cublasLtMatmulAlgo_t* algorithm,
                                     cublasLtMatmulAlgoConfigAttributes_t field, const void* value,
                                     size_t bytes) {
    std::memcpy(&fake<FakeAlgorithm>(algorithm).config[field], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.algo_config_get_attribute = [](const cublasLtMatmulAlgo_t* algorithm,
                                     cublasLtMatmulAlgoConfigAttributes_t field, void* value,
                                     size_t bytes, size_t* written) {
    std::memcpy(value, &fake<const FakeAlgorithm>(algorithm).config[field], bytes);
    *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
  };
  return api;
}

inline std::shared_ptr<const cuda::Device> FakeCublasLt::device() const {
  auto fakes = std::make_shared<FakeLibraries>();
  fakes->cublaslt_api = api();
  cuda::DriverApi& driver = fakes->driver_api.emplace();
  driver.init = [](unsigned) { return CUDA_SUCCESS; };
  driver.driver_get_version = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  driver.device_get_count = [](int* count) { return *count = 1, CUDA_SUCCESS; };
  driver.device_get = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
  driver.device_get_name = [](char* name, int, CUdevice) { return name[0] = 0, CUDA_SUCCESS; };
  driver.device_get_pci_bus_id = [](char* address, int, CUdevice) {
    return address[0] = 0, CUDA_SUCCESS;
  };
  driver.device_total_mem = [](size_t* bytes, CUdevice) { return *bytes = 1, CUDA_SUCCESS; };
  driver.device_get_attribute = [](int* value, CUdevice_attribute, CUdevice) {
    return *value = 9, CUDA_SUCCESS;
  };
  driver.primary_ctx_retain = [](CUcontext* context, CUdevice) {
    return *context = nullptr, CUDA_SUCCESS;
  };
  driver.ctx_push_current = [](CUcontext) { return CUDA_SUCCESS; };
  driver.ctx_pop_current = [](CUcontext*) { return CUDA_SUCCESS; };
  driver.stream_create = [](CUstream* stream, unsigned) { return *stream = nullptr, CUDA_SUCCESS; };
  return cuda::Device::open(0, std::move(fakes)).value();
}

}  // namespace kiln::testing
