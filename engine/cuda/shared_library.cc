#include "engine/cuda/shared_library.h"

#include <dlfcn.h>

namespace kiln::cuda {

Result<SharedLibrary> SharedLibrary::open(std::span<const char* const> names) {
  std::string tried;
  for (const char* name : names) {
    // Never closed: CUDA's libraries keep state in threads that outlives them badly.
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      SharedLibrary library;
      library.handle_ = std::shared_ptr<void>(handle, [](void*) {});
      library.name_ = name;
      return library;
    }
    const char* reason = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(reason != nullptr ? reason : name);
  }
  return Error{ErrorCode::kUnsupported, "cannot open '" + std::string(names.front()) + "' (" +
                                            tried + "); install it or set LD_LIBRARY_PATH"};
}

void* SharedLibrary::find(const char* symbol) const { return dlsym(handle_.get(), symbol); }

}  // namespace kiln::cuda
