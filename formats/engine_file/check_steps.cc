#include "formats/engine_file/check_steps.h"

#include <algorithm>
#include <array>
#include <string>

#include "formats/engine_file/check_plan.h"

namespace kiln::plan {
namespace {

using Space = BufferRef::Space;

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

std::string_view to_string(Space space) {
  constexpr std::array<std::string_view, 6> kNames = {"none",  "arena",  "weights",
                                                      "input", "output", "cache"};
  return kNames[static_cast<size_t>(space)];
}

bool fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Of every CUDA device so far.
constexpr std::array<uint32_t, 3> kMostGrid = {2147483647, 65535, 65535};
constexpr std::array<uint32_t, 3> kMostBlock = {1024, 1024, 64};
constexpr uint64_t kMostThreads = 1024;
// Of tensor maps: bytes that rows and addresses are multiples of, rows, rows of a box.
constexpr uint64_t kMapAlignment = 16, kMostMapRows = uint64_t{1} << 32, kMostBoxRows = 256;

class StepChecker {
 public:
  StepChecker(const Plan& plan, const ShapePoint& point) : plan_(plan), point_(point) {}

  // The steps [first, last) with all that is nested in them.
  Result<> check_span(size_t first, size_t last, size_t depth) {
    if (depth > kMostNesting) {
      return corrupt("control flow is nested more than " + std::to_string(kMostNesting) + " deep");
    }
    for (size_t i = first; i < last;) {
      Result<size_t> next = check_step(i, last, depth);
      if (!next) return std::move(next).error();
      i = *next;
    }
    return Ok();
  }

 private:
  // The number of the step after this one and its nested ones.
  Result<size_t> check_step(size_t i, size_t last, size_t depth) {
    const Step& step = point_.steps[i];
    if (step.region >= point_.region_names.size()) {
      return corrupt("step " + std::to_string(i) + ": region is " + std::to_string(step.region) +
                     ", expected less than " + std::to_string(point_.region_names.size()));
    }
    auto checked = std::visit([this](const auto& action) { return check(action); }, step.action);
    if (!checked) {
      return std::move(checked).error().context("step " + std::to_string(i) + " ('" +
                                                point_.region_names[step.region] + "')");
    }
    return check_nested(i, last, depth);
  }

  Result<size_t> check_nested(size_t i, size_t last, size_t depth) {
    const Step& step = point_.steps[i];
    size_t spans[2] = {0, 0};
    if (const auto* branch = std::get_if<Branch>(&step.action)) {
      spans[0] = branch->then_steps;
      spans[1] = branch->else_steps;
    } else if (const auto* repeat = std::get_if<Repeat>(&step.action)) {
      spans[0] = repeat->body_steps;
    }
    size_t at = i + 1;
    for (size_t span : spans) {
      if (span > last - at) {
        return corrupt("step " + std::to_string(i) + ": " + std::to_string(span) +
                       " nested steps, expected at most " + std::to_string(last - at));
      }
      if (span > 0) KILN_RETURN_IF_ERROR(check_span(at, at + span, depth + 1));
      at += span;
    }
    return at;
  }

  Result<> check(const HostOperation& step) const {
    if (step.operation >= plan_.blobs.size()) return bad_number("operation blob", step.operation);
    return check_call(step.inputs, step.outputs, step.workspace);
  }

  Result<> check(const Matmul& step) const { return check_library_call(step); }
  Result<> check(const CudnnGraph& step) const { return check_library_call(step); }

  template <class Call>
  Result<> check_library_call(const Call& step) const {
    KILN_RETURN_IF_ERROR(check_target("a library call"));
    if (step.operation >= plan_.blobs.size()) return bad_number("operation blob", step.operation);
    return check_call(step.inputs, step.outputs, step.workspace);
  }

  Result<> check(const KernelLaunch& step) const {
    KILN_RETURN_IF_ERROR(check_target("a kernel launch"));
    if (step.module >= plan_.blobs.size()) return bad_number("module blob", step.module);
    if (step.entry.empty()) return corrupt("the kernel's entry has no name");
    KILN_RETURN_IF_ERROR(check_extents("grid", step.grid, kMostGrid));
    KILN_RETURN_IF_ERROR(check_extents("block", step.block, kMostBlock));
    const uint64_t threads = uint64_t{step.block[0]} * step.block[1] * step.block[2];
    if (threads > kMostThreads) {
      return corrupt("block has " + std::to_string(threads) + " threads, expected at most " +
                     std::to_string(kMostThreads));
    }
    KILN_RETURN_IF_ERROR(check_call(step.inputs, step.outputs, step.workspace));
    for (const TensorMap& map : step.tensor_maps) KILN_RETURN_IF_ERROR(check_map(map, step));
    return Ok();
  }

  // REQUIRES: the step's operands were checked.
  static Result<> check_map(const TensorMap& map, const KernelLaunch& step) {
    const size_t inputs = step.inputs.size();
    if (map.operand >= inputs + step.outputs.size()) {
      return bad_number("a tensor map's operand", map.operand);
    }
    const Operand& operand =
        map.operand < inputs ? step.inputs[map.operand] : step.outputs[map.operand - inputs];
    const std::string name = "tensor map of operand " + std::to_string(map.operand) + " (" +
                             kiln::to_string(operand.type) + ")";
    const int64_t bits = bits_of(operand.type.dtype);
    if (bits != 8 && bits != 16 && bits != 32) {
      return corrupt(name + ": elements have " + std::to_string(bits) +
                     " bits, expected 8, 16 or 32");
    }
    const uint64_t row = uint64_t{map.columns} * static_cast<uint64_t>(bits) / 8;
    if (row == 0 || row % kMapAlignment != 0) {
      return corrupt(name + ": rows have " + std::to_string(row) +
                     " bytes, expected a multiple of " + std::to_string(kMapAlignment));
    }
    const uint64_t rows = operand.buffer.bytes / row;
    if (rows == 0 || rows > kMostMapRows || operand.buffer.bytes % row != 0) {
      return corrupt(name + ": " + std::to_string(operand.buffer.bytes) + " bytes are not 1 to " +
                     std::to_string(kMostMapRows) + " rows of " + std::to_string(row));
    }
    if (operand.buffer.offset % kMapAlignment != 0) {
      return corrupt(name + ": offset is " + std::to_string(operand.buffer.offset) +
                     ", expected a multiple of " + std::to_string(kMapAlignment));
    }
    if (map.box_rows == 0 || map.box_rows > kMostBoxRows) {
      return corrupt(name + ": a box has " + std::to_string(map.box_rows) +
                     " rows, expected 1 to " + std::to_string(kMostBoxRows));
    }
    return Ok();
  }

  Result<> check_target(const char* what) const {
    if (plan_.origin.target == Target::kCuda) return Ok();
    return corrupt(std::string(what) + " in an engine for target host");
  }

  static Result<> check_extents(const char* name, const std::array<uint32_t, 3>& extents,
                                const std::array<uint32_t, 3>& most) {
    for (size_t i = 0; i < 3; ++i) {
      if (extents[i] > 0 && extents[i] <= most[i]) continue;
      return corrupt(std::string(name) + " extent " + std::to_string(i) + " is " +
                     std::to_string(extents[i]) + ", expected 1 to " + std::to_string(most[i]));
    }
    return Ok();
  }

  Result<> check(const PluginCall& step) const {
    if (step.plugin >= plan_.plugins.size()) return bad_number("plugin", step.plugin);
    if (step.attributes >= plan_.blobs.size()) return bad_number("attribute blob", step.attributes);
    return check_call(step.inputs, step.outputs, step.workspace);
  }

  Result<> check(const Copy& step) const {
    KILN_RETURN_IF_ERROR(check_buffer(step.from, 1, "from"));
    KILN_RETURN_IF_ERROR(check_written(step.to, 1, "to"));
    if (step.from.bytes != step.to.bytes) {
      return corrupt("copies " + std::to_string(step.from.bytes) + " bytes to " +
                     std::to_string(step.to.bytes));
    }
    if (overlap(step.from, step.to)) return corrupt("copies a buffer onto itself");
    return Ok();
  }

  Result<> check(const Branch& step) const { return check_scalar(step.condition, 1, "condition"); }

  Result<> check(const Repeat& step) const {
    const bool counted = step.trip_count.space != Space::kNone;
    const bool conditional = step.condition.space != Space::kNone;
    if (!counted && !conditional) return corrupt("repeats without trip count or condition");
    if (step.body_steps == 0) return corrupt("repeats no step");
    if (counted) KILN_RETURN_IF_ERROR(check_scalar(step.trip_count, 8, "trip count"));
    if (conditional) KILN_RETURN_IF_ERROR(check_scalar(step.condition, 1, "condition"));
    if (step.iteration.space == Space::kNone) return Ok();
    KILN_RETURN_IF_ERROR(check_scalar(step.iteration, 8, "iteration"));
    return check_written(step.iteration, 8, "iteration");
  }

  Result<> check_call(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                      const BufferRef& workspace) const {
    uint64_t bytes = workspace.bytes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = "input " + std::to_string(i);
      KILN_RETURN_IF_ERROR(check_operand(inputs[i], name));
      KILN_RETURN_IF_ERROR(add_bytes(inputs[i], name, bytes));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = "output " + std::to_string(i);
      KILN_RETURN_IF_ERROR(check_operand(outputs[i], name));
      KILN_RETURN_IF_ERROR(check_written(outputs[i].buffer, 1, name));
      KILN_RETURN_IF_ERROR(add_bytes(outputs[i], name, bytes));
    }
    if (workspace.space == Space::kNone) {
      if (workspace.bytes != 0) return corrupt("workspace has bytes but no space");
      return Ok();
    }
    if (workspace.space != Space::kArena) return corrupt("workspace is not in the arena");
    return check_buffer(workspace, kWorkspaceAlignment, "workspace");
  }

  Result<> check_operand(const Operand& operand, const std::string& name) const {
    auto sized = check_type(operand.type);
    if (!sized) return std::move(sized).error().context(name);
    const auto expected = static_cast<uint64_t>(operand.type.bytes());
    if (operand.buffer.bytes != expected) {
      return corrupt(name + " has " + std::to_string(operand.buffer.bytes) + " bytes, " +
                     kiln::to_string(operand.type) + " needs " + std::to_string(expected));
    }
    const auto element_bytes = static_cast<uint64_t>(bits_of(operand.type.dtype)) / 8;
    return check_buffer(operand.buffer, std::max<uint64_t>(1, element_bytes), name);
  }

  // Operands may share bytes; a copy of each on the host must still be a size that does not
  // overflow.
  static Result<> add_bytes(const Operand& operand, const std::string& name, uint64_t& bytes) {
    bytes += operand.buffer.bytes;
    if (bytes <= kMostArenaBytes) return Ok();
    return corrupt("workspace and operands up to " + name + " have more than " +
                   std::to_string(kMostArenaBytes) + " bytes together");
  }

  Result<> check_scalar(const BufferRef& ref, uint64_t bytes, const std::string& name) const {
    if (ref.bytes != bytes) {
      return corrupt(name + " has " + std::to_string(ref.bytes) + " bytes, expected " +
                     std::to_string(bytes));
    }
    return check_buffer(ref, bytes, name);
  }

  Result<> check_written(const BufferRef& ref, uint64_t alignment, const std::string& name) const {
    if (ref.space != Space::kArena && ref.space != Space::kOutput) {
      return corrupt(name + " is written but lies in space '" + std::string(to_string(ref.space)) +
                     "', expected 'arena' or 'output'");
    }
    return check_buffer(ref, alignment, name);
  }

  // The buffer lies within its space and is aligned there; spaces start on 64 bytes, but for
  // callers' tensors, which are aligned to their element.
  Result<> check_buffer(const BufferRef& ref, uint64_t alignment, const std::string& name) const {
    if (ref.offset % alignment != 0) {
      return corrupt(name + ": offset is " + std::to_string(ref.offset) +
                     ", expected a multiple of " + std::to_string(alignment));
    }
    Result<uint64_t> size = space_bytes(ref, alignment);
    if (!size) return std::move(size).error().context(name);
    if (!fits(ref.offset, ref.bytes, *size)) {
      return corrupt(name + ": " + std::to_string(ref.bytes) + " bytes at " +
                     std::to_string(ref.offset) + " end after the " + std::to_string(*size) +
                     " bytes of its " + std::string(to_string(ref.space)));
    }
    if (ref.space == Space::kWeights && !within_constant(ref)) {
      return corrupt(name + ": " + std::to_string(ref.bytes) + " bytes at " +
                     std::to_string(ref.offset) + " of the weights are not in one constant");
    }
    return Ok();
  }

  Result<uint64_t> space_bytes(const BufferRef& ref, uint64_t alignment) const {
    switch (ref.space) {
      case Space::kArena:
        return point_.arena_bytes;
      case Space::kWeights:
        return static_cast<uint64_t>(plan_.weights.size());
      case Space::kInput:
        return tensor_bytes(ref, point_.inputs, alignment);
      case Space::kOutput:
        return tensor_bytes(ref, point_.outputs, alignment);
      case Space::kCache:
        return corrupt("space 'cache' is reserved");
      case Space::kNone:
        break;
    }
    return corrupt("has no buffer");
  }

  static Result<uint64_t> tensor_bytes(const BufferRef& ref, const std::vector<TensorType>& types,
                                       uint64_t alignment) {
    if (ref.index >= types.size()) {
      return corrupt(std::string(to_string(ref.space)) + " number is " + std::to_string(ref.index) +
                     ", expected less than " + std::to_string(types.size()));
    }
    const TensorType& type = types[ref.index];
    const auto element_bytes = static_cast<uint64_t>(bits_of(type.dtype)) / 8;
    if (alignment > std::max<uint64_t>(1, element_bytes)) {
      return corrupt("needs an alignment of " + std::to_string(alignment) + " in a tensor of " +
                     kiln::to_string(type));
    }
    return static_cast<uint64_t>(type.bytes());
  }

  bool within_constant(const BufferRef& ref) const {
    const auto after =
        std::upper_bound(plan_.constants.begin(), plan_.constants.end(), ref.offset,
                         [](uint64_t offset, const Constant& c) { return offset < c.offset; });
    if (after == plan_.constants.begin()) return false;
    const Constant& constant = *std::prev(after);
    return fits(ref.offset - constant.offset, ref.bytes, constant.bytes);
  }

  static Error bad_number(const char* what, uint32_t number) {
    return corrupt(std::string(what) + " number " + std::to_string(number) + " does not exist");
  }

  const Plan& plan_;
  const ShapePoint& point_;
};

}  // namespace

bool overlap(const BufferRef& a, const BufferRef& b) {
  if (a.space != b.space || a.bytes == 0 || b.bytes == 0) return false;
  if ((a.space == Space::kInput || a.space == Space::kOutput) && a.index != b.index) return false;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Result<> check_steps(const Plan& plan, const ShapePoint& point) {
  return StepChecker(plan, point).check_span(0, point.steps.size(), 0);
}

}  // namespace kiln::plan
