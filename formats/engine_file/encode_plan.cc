#include "formats/engine_file/encode_plan.h"

#include <map>
#include <string>
#include <tuple>

#include "formats/engine_file/plan_generated.h"

namespace kiln::engine_file {
namespace {

constexpr size_t kBlobAlignment = 16;

// A flatbuffer holds at most 2 GiB; the builder asserts beyond, so growth is watched from outside.
constexpr size_t kMostBytes = size_t{2000} << 20;

class PlanEncoder {
 public:
  Result<EncodedPlan> encode(const plan::Plan& plan) {
    std::vector<flatbuffers::Offset<ShapePoint>> points;
    for (const plan::ShapePoint& point : plan.points) {
      KILN_ASSIGN_OR_RETURN(auto offset, encode_point(point));
      points.push_back(offset);
    }
    const auto origin = encode_origin(plan.origin);
    const auto inputs = encode_io(plan.inputs), outputs = encode_io(plan.outputs);
    const auto reason = text(plan.batch_padding_reason);
    const auto point_vector = builder_.CreateVector(points);
    const auto constants = encode_constants(plan.constants);
    const auto blobs = encode_blobs(plan.blobs);
    const auto plugins = encode_plugins(plan.plugins);
    const auto types = builder_.CreateVector(types_);
    builder_.Finish(CreatePlan(builder_, origin, types, inputs, outputs, plan.batch_padding, reason,
                               point_vector, constants, blobs, plugins));
    const auto* data = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return EncodedPlan{{data, data + builder_.GetSize()}, std::move(blob_bytes_)};
  }

 private:
  template <class T>
  using Vector = flatbuffers::Offset<flatbuffers::Vector<T>>;
  template <class T>
  using TableVector = Vector<flatbuffers::Offset<T>>;

  flatbuffers::Offset<flatbuffers::String> text(const std::string& value) {
    return builder_.CreateString(value);
  }

  static BufferRef buffer(const plan::BufferRef& ref) {
    return BufferRef(ref.offset, ref.bytes, ref.index, static_cast<uint8_t>(ref.space));
  }

  uint32_t type_number(const kiln::TensorType& type) {
    const auto [at, added] = type_numbers_.try_emplace(std::pair(type.dtype, type.shape),
                                                       static_cast<uint32_t>(types_.size()));
    if (added) {
      const auto shape = builder_.CreateVector(type.shape);
      types_.push_back(CreateTensorType(builder_, static_cast<uint8_t>(type.dtype), shape));
    }
    return at->second;
  }

  Vector<uint32_t> type_vector(const std::vector<kiln::TensorType>& types) {
    std::vector<uint32_t> numbers;
    for (const kiln::TensorType& type : types) numbers.push_back(type_number(type));
    return builder_.CreateVector(numbers);
  }

  Vector<const Operand*> operands(const std::vector<plan::Operand>& values) {
    std::vector<Operand> encoded;
    for (const plan::Operand& value : values) {
      encoded.emplace_back(buffer(value.buffer), type_number(value.type));
    }
    return builder_.CreateVectorOfStructs(encoded);
  }

  // 0, no field, where there are none.
  Vector<const TensorMap*> tensor_maps(const std::vector<plan::TensorMap>& maps) {
    if (maps.empty()) return 0;
    std::vector<TensorMap> encoded;
    for (const plan::TensorMap& map : maps) {
      encoded.emplace_back(map.operand, map.columns, map.box_rows);
    }
    return builder_.CreateVectorOfStructs(encoded);
  }

  // Each returns the union's member for a step.
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::HostOperation& step) {
    const auto inputs = operands(step.inputs), outputs = operands(step.outputs);
    const BufferRef workspace = buffer(step.workspace);
    return {Action::HostOperation,
            CreateHostOperation(builder_, step.operation, inputs, outputs, &workspace).Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::PluginCall& step) {
    const auto inputs = operands(step.inputs), outputs = operands(step.outputs);
    const BufferRef workspace = buffer(step.workspace);
    return {Action::PluginCall,
            CreatePluginCall(builder_, step.plugin, step.attributes, inputs, outputs, &workspace)
                .Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::Copy& step) {
    const BufferRef from = buffer(step.from), to = buffer(step.to);
    return {Action::Copy, CreateCopy(builder_, &from, &to).Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::Branch& step) {
    const BufferRef condition = buffer(step.condition);
    return {Action::Branch,
            CreateBranch(builder_, &condition, step.then_steps, step.else_steps).Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::KernelLaunch& step) {
    const auto entry = text(step.entry);
    const auto inputs = operands(step.inputs), outputs = operands(step.outputs);
    const BufferRef workspace = buffer(step.workspace);
    const Extents grid(step.grid[0], step.grid[1], step.grid[2]);
    const Extents block(step.block[0], step.block[1], step.block[2]);
    const auto maps = tensor_maps(step.tensor_maps);
    return {Action::KernelLaunch,
            CreateKernelLaunch(builder_, step.module, entry, &grid, &block, step.shared_bytes,
                               step.programmatic, inputs, outputs, &workspace, maps)
                .Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::Matmul& step) {
    const auto inputs = operands(step.inputs), outputs = operands(step.outputs);
    const BufferRef workspace = buffer(step.workspace);
    return {Action::Matmul,
            CreateMatmul(builder_, step.operation, inputs, outputs, &workspace).Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::CudnnGraph& step) {
    const auto inputs = operands(step.inputs), outputs = operands(step.outputs);
    const BufferRef workspace = buffer(step.workspace);
    return {Action::CudnnGraph,
            CreateCudnnGraph(builder_, step.operation, inputs, outputs, &workspace).Union()};
  }
  std::pair<Action, flatbuffers::Offset<void>> encode_action(const plan::Repeat& step) {
    const BufferRef trip_count = buffer(step.trip_count), condition = buffer(step.condition),
                    iteration = buffer(step.iteration);
    return {Action::Repeat,
            CreateRepeat(builder_, &trip_count, &condition, &iteration, step.body_steps).Union()};
  }

  Result<flatbuffers::Offset<ShapePoint>> encode_point(const plan::ShapePoint& point) {
    std::vector<flatbuffers::Offset<Step>> steps;
    for (const plan::Step& step : point.steps) {
      const auto [kind, action] =
          std::visit([this](const auto& value) { return encode_action(value); }, step.action);
      steps.push_back(CreateStep(builder_, step.region, kind, action));
      if (builder_.GetSize() > kMostBytes) {
        return Error{ErrorCode::kUnsupported, "the plan passes 2 GiB at point '" + point.name +
                                                  "'; build for fewer shape points"};
      }
    }
    std::vector<flatbuffers::Offset<Region>> regions;
    for (const std::string& name : point.region_names) {
      regions.push_back(CreateRegion(builder_, text(name)));
    }
    std::vector<flatbuffers::Offset<FixedInput>> fixed;
    for (const plan::FixedInput& input : point.fixed_inputs) {
      const auto value = builder_.CreateVector(reinterpret_cast<const uint8_t*>(input.value.data()),
                                               input.value.size());
      fixed.push_back(CreateFixedInput(builder_, input.input, value));
    }
    const auto name = text(point.name);
    const auto inputs = type_vector(point.inputs), outputs = type_vector(point.outputs);
    const auto fixed_vector = builder_.CreateVector(fixed);
    const auto region_vector = builder_.CreateVector(regions);
    const auto step_vector = builder_.CreateVector(steps);
    return CreateShapePoint(builder_, name, point.batch, inputs, outputs, fixed_vector,
                            point.arena_bytes, point.arena_lower_bound_bytes, region_vector,
                            step_vector);
  }

  TableVector<IoTensor> encode_io(const std::vector<plan::IoTensor>& tensors) {
    std::vector<flatbuffers::Offset<IoTensor>> encoded;
    for (const plan::IoTensor& tensor : tensors) {
      encoded.push_back(CreateIoTensor(builder_, text(tensor.name), tensor.batch_axis));
    }
    return builder_.CreateVector(encoded);
  }

  TableVector<Constant> encode_constants(const std::vector<plan::Constant>& constants) {
    std::vector<flatbuffers::Offset<Constant>> encoded;
    for (const plan::Constant& constant : constants) {
      encoded.push_back(CreateConstant(builder_, text(constant.name), constant.offset,
                                       constant.bytes, constant.hash));
    }
    return builder_.CreateVector(encoded);
  }

  Vector<const Blob*> encode_blobs(const std::vector<SharedBytes>& blobs) {
    std::vector<Blob> encoded;
    for (const SharedBytes& blob : blobs) {
      blob_bytes_.resize((blob_bytes_.size() + kBlobAlignment - 1) / kBlobAlignment *
                         kBlobAlignment);
      encoded.emplace_back(blob_bytes_.size(), blob.size());
      blob_bytes_.insert(blob_bytes_.end(), blob.bytes.begin(), blob.bytes.end());
    }
    return builder_.CreateVectorOfStructs(encoded);
  }

  TableVector<PluginReference> encode_plugins(const std::vector<plan::PluginReference>& plugins) {
    std::vector<flatbuffers::Offset<PluginReference>> encoded;
    for (const plan::PluginReference& plugin : plugins) {
      const auto name = text(plugin.name), version = text(plugin.version);
      encoded.push_back(CreatePluginReference(builder_, name, version));
    }
    return builder_.CreateVector(encoded);
  }

  flatbuffers::Offset<Origin> encode_origin(const plan::Origin& origin) {
    const auto kiln_version = text(origin.kiln_version), device = text(origin.device),
               precision = text(origin.precision), model_name = text(origin.model_name);
    return CreateOrigin(builder_, kiln_version, static_cast<uint8_t>(origin.target), device,
                        origin.compute_capability, origin.driver_version, origin.cuda_version,
                        origin.cublaslt_version, origin.cudnn_version, precision, origin.verified,
                        model_name, origin.model_hash, origin.rank, origin.world_size);
  }

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<TensorType>> types_;
  std::map<std::pair<DType, Shape>, uint32_t> type_numbers_;
  std::vector<std::byte> blob_bytes_;
};

}  // namespace

Result<EncodedPlan> encode_plan(const plan::Plan& plan) { return PlanEncoder().encode(plan); }

}  // namespace kiln::engine_file
