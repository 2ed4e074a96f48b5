#include "formats/onnx/content_hash.h"

#include <xxhash.h>

namespace kiln::onnx {

uint64_t content_hash(const Model& model) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const SharedBytes& file : model.files) {
    XXH3_64bits_update(&state, file.data(), file.size());
  }
  const uint64_t hash = XXH3_64bits_digest(&state);
  return hash == 0 ? 1 : hash;
}

}  // namespace kiln::onnx
