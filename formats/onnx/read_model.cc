#include "formats/onnx/read_model.h"

#include <onnx/onnx_pb.h>

#include <limits>

#include "formats/file/mapped_file.h"
#include "formats/onnx/check_model.h"
#include "formats/onnx/decode_graph.h"
#include "formats/onnx/decode_tensor.h"
#include "formats/onnx/wire_format.h"

namespace kiln::onnx {
namespace {

template <class Proto>
Result<Proto> parse(std::span<const std::byte> bytes, const char* what) {
  if (bytes.empty())
    return Error{ErrorCode::kCorruptData, "is empty, expected " + std::string(what)};
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Error{ErrorCode::kUnsupported,
                 "has " + std::to_string(bytes.size()) +
                     " bytes, protobuf reads at most 2147483647; store its tensors as external "
                     "data"};
  }
  Proto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{ErrorCode::kCorruptData,
                 "is no " + std::string(what) + ": " + explain_parse_failure(bytes)};
  }
  return proto;
}

std::string producer_of(const ::onnx::ModelProto& proto) {
  if (proto.producer_version().empty()) return proto.producer_name();
  return proto.producer_name() + " " + proto.producer_version();
}

Result<Model> decode_model(::onnx::ModelProto& proto, const std::filesystem::path& folder) {
  if (!proto.has_graph()) {
    return Error{ErrorCode::kCorruptData, "has no graph, expected an ONNX model"};
  }
  Model model;
  model.ir_version = proto.ir_version();
  model.producer = producer_of(proto);
  KILN_ASSIGN_OR_RETURN(model.opset_imports, decode_opset_imports(proto.opset_import()));
  ExternalData external(folder);
  KILN_ASSIGN_OR_RETURN(model.graph, decode_graph(*proto.mutable_graph(), external));
  for (auto& function : *proto.mutable_functions()) {
    auto decoded = decode_function(function, external);
    if (!decoded.ok()) {
      return std::move(decoded).error().context("function '" + function.name() + "'");
    }
    model.functions.push_back(*std::move(decoded));
  }
  KILN_RETURN_IF_ERROR(check_model(model));
  model.files = external.files();
  model.external_paths = external.paths();
  return model;
}

// Runs `read`, turning what protobuf, ONNX or the allocator throws into an error.
template <class Read>
auto guarded(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "there is not enough memory to read it"};
  } catch (const std::exception& e) {
    return Error{ErrorCode::kCorruptData, std::string("cannot be read: ") + e.what()};
  }
}

Error in_file(Error error, const std::filesystem::path& path) {
  return std::move(error).context("read '" + path.string() + "'");
}

}  // namespace

Result<Model> parse_model(std::span<const std::byte> bytes, const std::filesystem::path& folder) {
  return guarded([&]() -> Result<Model> {
    KILN_ASSIGN_OR_RETURN(auto proto, parse<::onnx::ModelProto>(bytes, "onnx model"));
    return decode_model(proto, folder);
  });
}

Result<Model> read_model(const std::filesystem::path& path) {
  KILN_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path));
  auto model = parse_model(file.bytes, path.has_parent_path() ? path.parent_path() : ".");
  if (!model.ok()) return in_file(std::move(model).error(), path);
  model->path = path;
  model->files.insert(model->files.begin(), file);
  return model;
}

Result<Tensor> read_tensor_file(const std::filesystem::path& path) {
  KILN_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path));
  auto tensor = guarded([&]() -> Result<Tensor> {
    KILN_ASSIGN_OR_RETURN(auto proto, parse<::onnx::TensorProto>(file.bytes, "onnx tensor"));
    ExternalData none({});
    return decode_tensor(proto, none);
  });
  if (!tensor.ok()) return in_file(std::move(tensor).error(), path);
  return tensor;
}

}  // namespace kiln::onnx
