#include "builder/verify/user_data.h"

#include <algorithm>

#include "builder/verify/batch_rows.h"

namespace kiln {
namespace {

Error bad(const UserData& data, const std::string& message) {
  return {ErrorCode::kInvalidArgument, "verify data '" + data.file.string() + "': " + message};
}

// The input's array, with the extents of the point but for the batch axis.
Result<HostTensor> tensor_for(const UserData& data, const std::string& name, const TensorType& type,
                              int axis) {
  const auto found = std::find_if(data.arrays.begin(), data.arrays.end(),
                                  [&](const npy::Array& array) { return array.name == name; });
  if (found == data.arrays.end()) return bad(data, "has no array '" + name + "'");
  TensorType wanted = type;
  const auto at = static_cast<size_t>(axis);
  if (axis >= 0 && found->type.rank() == type.rank()) wanted.shape[at] = found->type.shape[at];
  if (found->type != wanted || (axis >= 0 && wanted.shape[at] == 0)) {
    return bad(data, "array '" + name + "' is " + to_string(found->type) + ", expected " +
                         to_string(type) + (axis < 0 ? "" : " with any number of rows"));
  }
  return HostTensor{found->type, found->data};
}

HostTensor rows_from(const HostTensor& tensor, int axis, int64_t first, int64_t count) {
  const int64_t rows = tensor.type.shape[static_cast<size_t>(axis)];
  std::vector<HostTensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(take_row(tensor, axis, std::min(first + i, rows - 1), rows));
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
  std::vector<HostTensor> tensors;
  std::vector<int> axes;
  for (ir::ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name;
    const auto batch = point.batch_axes.find(name);
    axes.push_back(batch == point.batch_axes.end() ? -1 : batch->second);
    KILN_ASSIGN_OR_RETURN(tensors.emplace_back(),
                          tensor_for(data, name, graph.type(id), axes.back()));
    if (axes.back() < 0) continue;
    const int64_t found = tensors.back().type.shape[static_cast<size_t>(axes.back())];
    if (rows != 0 && found != rows) {
      return bad(data, "array '" + name + "' has " + std::to_string(found) + " rows, another has " +
                           std::to_string(rows));
    }
    rows = found;
  }
  if (rows == 0) return std::vector<std::vector<HostTensor>>{std::move(tensors)};
  std::vector<std::vector<HostTensor>> requests;
  for (int64_t first = 0; first < std::min(rows, most_rows); first += point.batch) {
    auto& request = requests.emplace_back();
    for (size_t i = 0; i < tensors.size(); ++i) {
      request.push_back(axes[i] < 0 ? tensors[i]
                                    : rows_from(tensors[i], axes[i], first, point.batch));
    }
  }
  return requests;
}

}  // namespace kiln
