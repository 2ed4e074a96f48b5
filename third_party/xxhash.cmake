# Header-only: everything is inlined, no library is linked.
find_path(KILN_XXHASH_INCLUDE xxhash.h)
if(NOT KILN_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash: xxhash.h not found; run third_party/bootstrap.sh")
endif()
add_library(third_party::xxhash INTERFACE IMPORTED GLOBAL)
target_include_directories(third_party::xxhash INTERFACE ${KILN_XXHASH_INCLUDE})
target_compile_definitions(third_party::xxhash INTERFACE XXH_INLINE_ALL)
