#include "builder/verify/user_data.h"

#include <algorithm>

#include "builder/verify/batch_rows.h"

namespace kiln {
namespace {

Error bad(const UserData& data, const std::string& message) {
  return {ErrorCode::kInvalidArgument, "verify data '" + data.file.string() + "': " + message};
}

std::string names_in(const UserData& data) {
  std::string names;
  for (const npy::Array& array : data.arrays) names += (names.empty() ? "" : ", ") + array.name;
  return names.empty() ? "no array at all" : names;
}

// One of the graph's inputs, as the data must have it.
struct Slot {
  std::string name;
  TensorType type;
  int axis = -1;           // the batch axis, -1: none
  int64_t row_extent = 1;  // of one row along it
};

// The input's array, with the extents of the point but for the batch axis.
Result<HostTensor> tensor_for(const UserData& data, const Slot& slot) {
  const auto found = std::find_if(data.arrays.begin(), data.arrays.end(),
                                  [&](const npy::Array& array) { return array.name == slot.name; });
  if (found == data.arrays.end()) {
    return bad(data, "has no array '" + slot.name + "'; it has " + names_in(data));
  }
  TensorType wanted = slot.type;
  bool fits = true;
  if (slot.axis >= 0 && found->type.rank() == slot.type.rank()) {
    const auto at = static_cast<size_t>(slot.axis);
    wanted.shape[at] = found->type.shape[at];
    fits = wanted.shape[at] > 0 && wanted.shape[at] % slot.row_extent == 0;
  }
  if (found->type != wanted || !fits) {
    return bad(data, "array '" + slot.name + "' is " + to_string(found->type) + ", expected " +
                         to_string(slot.type) +
                         (slot.axis < 0 ? ""
                                        : " with any number of rows along axis " +
                                              std::to_string(slot.axis)));
  }
  return HostTensor{found->type, found->data};
}

Result<> check_fixed(const UserData& data, const Slot& slot, const HostTensor& tensor,
                     const ShapePoint& point) {
  const auto fixed = point.fixed_values.find(slot.name);
  if (fixed == point.fixed_values.end()) return Ok();
  if (std::ranges::equal(tensor.bytes.bytes, fixed->second.bytes)) return Ok();
  return bad(data, "array '" + slot.name +
                       "' has another value than the one that the engine is built for; give that "
                       "one, or build for this one with --shape-values");
}

// `count` rows from `first` on; after the last comes the first again.
HostTensor rows_from(const HostTensor& tensor, int axis, int64_t first, int64_t count,
                     int64_t rows) {
  std::vector<HostTensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(take_row(tensor, axis, (first + i) % rows, rows));
  }
  return stack_rows(parts, axis);
}

}  // namespace

Result<std::vector<UserData>> read_user_data(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".npz") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "verify data '" + path.string() + "': the folder has no .npz file"};
    }
  } else {
    files.push_back(path);
  }
  std::vector<UserData> all;
  for (const auto& file : files) {
    KILN_ASSIGN_OR_RETURN(auto arrays, npy::read_arrays(file));
    all.push_back({file, std::move(arrays)});
  }
  return all;
}

Result<std::vector<std::vector<HostTensor>>> user_requests(const UserData& data,
                                                           const ir::Graph& graph,
                                                           const ShapePoint& point,
                                                           int64_t most_rows) {
  int64_t rows = 0;  // 0: nothing has a batch
  std::string counted;
  std::vector<HostTensor> tensors;
  std::vector<int> axes;
  for (ir::ValueId id : graph.inputs()) {
    Slot slot{graph.value(id).name, graph.type(id)};
    const auto batch = point.batch_axes.find(slot.name);
    if (batch != point.batch_axes.end()) {
      slot.axis = batch->second;
      slot.row_extent = slot.type.shape[static_cast<size_t>(slot.axis)] / point.batch;
    }
    axes.push_back(slot.axis);
    KILN_ASSIGN_OR_RETURN(tensors.emplace_back(), tensor_for(data, slot));
    KILN_RETURN_IF_ERROR(check_fixed(data, slot, tensors.back(), point));
    if (slot.axis < 0) continue;
    const int64_t found =
        tensors.back().type.shape[static_cast<size_t>(slot.axis)] / slot.row_extent;
    if (rows != 0 && found != rows) {
      return bad(data, "array '" + slot.name + "' has " + std::to_string(found) + " rows, '" +
                           counted + "' has " + std::to_string(rows));
    }
    rows = found;
    counted = slot.name;
  }
  if (rows == 0) return std::vector<std::vector<HostTensor>>{std::move(tensors)};
  std::vector<std::vector<HostTensor>> requests;
  for (int64_t first = 0; first < std::min(rows, most_rows); first += point.batch) {
    auto& request = requests.emplace_back();
    for (size_t i = 0; i < tensors.size(); ++i) {
      request.push_back(axes[i] < 0 ? tensors[i]
                                    : rows_from(tensors[i], axes[i], first, point.batch, rows));
    }
  }
  return requests;
}

}  // namespace kiln
