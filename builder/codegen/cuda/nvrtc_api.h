// NVRTC as a table of functions, opened by name: building needs no toolkit, compiling does.
#pragma once
#include <cstddef>

#include "formats/result.h"

namespace kiln::codegen {

using NvrtcProgram = struct _nvrtcProgram*;

// Signatures are those of nvrtc.h; a status of 0 is success.
struct NvrtcApi {
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_text)(int status) = nullptr;
  int (*create)(NvrtcProgram*, const char* source, const char* name, int header_count,
                const char* const* headers, const char* const* header_names) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*compile)(NvrtcProgram, int option_count, const char* const* options) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*cubin_size)(NvrtcProgram, size_t*) = nullptr;
  int (*cubin)(NvrtcProgram, char*) = nullptr;
};

// Opened by the first call. kUnsupported says what was tried. Thread-safe.
Result<const NvrtcApi*> nvrtc();

}  // namespace kiln::codegen
