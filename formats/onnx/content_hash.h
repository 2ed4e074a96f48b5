// Which model an engine was built from.
#pragma once
#include <cstdint>

#include "formats/onnx/model.h"

namespace kiln::onnx {

// xxh3-64 of Model::files, one after the other: what `cat m.onnx w.bin | xxhsum -H3` prints. Reads
// every byte of them. Never 0, which stands for an unknown model.
uint64_t content_hash(const Model& model);

}  // namespace kiln::onnx
