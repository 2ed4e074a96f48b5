// Why bytes do not parse as a protobuf message; protobuf itself only says that they do not.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace kiln::onnx {

// REQUIRES: the bytes failed to parse. One clause that names the offset where the message's own
// fields break, or else says that the fault lies deeper.
std::string explain_parse_failure(std::span<const std::byte> bytes);

}  // namespace kiln::onnx
