// Reads .onnx models and .pb tensor files. Nothing thrown by protobuf or ONNX's library gets out.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// Reads and checks a model. External data is mapped, never read whole; inline data is kept as
// parsed. Errors: kIo (cannot open), kCorruptData (does not parse, or breaks a rule of the format),
// kVersionMismatch (newer IR or operator set than we know), kUnsupported (strings, complex
// numbers and other element types without a DType). Operators are not judged: that an operator or
// domain is unknown is for the caller to say (see schema.h). Files that the model maps must not
// shrink while it lives.
Result<Model> read_model(const std::filesystem::path& path);

// The same from memory; external data is looked for in `folder`, and refused when that is empty.
// The bytes need not outlive the call.
Result<Model> parse_model(std::span<const std::byte> bytes,
                          const std::filesystem::path& folder = {});

// A serialized TensorProto, as in ONNX's backend test data (input_0.pb).
Result<Tensor> read_tensor_file(const std::filesystem::path& path);

}  // namespace kiln::onnx
