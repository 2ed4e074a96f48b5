#include "builder/codegen/cuda/nvrtc_api.h"

#include <dlfcn.h>

#include <string>

namespace kiln::codegen {
namespace {

Result<void*> open_library() {
  std::string tried;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* reason = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(reason != nullptr ? reason : name);
  }
  return Error{ErrorCode::kUnsupported, "cannot open NVRTC, which compiles device code (" + tried +
                                            "); install the CUDA Toolkit or set LD_LIBRARY_PATH"};
}

template <class Function>
Result<> bind(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (function != nullptr) return Ok();
  return Error{ErrorCode::kVersionMismatch,
               "NVRTC has no function '" + std::string(symbol) + "'; install CUDA 12.0 or newer"};
}

Result<NvrtcApi> open_api() {
  KILN_ASSIGN_OR_RETURN(void* const library, open_library());
  NvrtcApi api;
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcVersion", api.version));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcGetErrorString", api.error_text));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcCreateProgram", api.create));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcDestroyProgram", api.destroy));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcCompileProgram", api.compile));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcGetProgramLogSize", api.log_size));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcGetProgramLog", api.log));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcGetCUBINSize", api.cubin_size));
  KILN_RETURN_IF_ERROR(bind(library, "nvrtcGetCUBIN", api.cubin));
  return api;
}

}  // namespace

Result<const NvrtcApi*> nvrtc() {
  static const Result<NvrtcApi> api = open_api();
  if (!api.ok()) return api.error();
  return &*api;
}

}  // namespace kiln::codegen
