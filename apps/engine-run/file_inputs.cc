#include "apps/engine-run/file_inputs.h"

#include <algorithm>
#include <charconv>

#include "formats/npy/array_file.h"

namespace kiln::run {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Single bytes of no known type become the type that is wanted; 4-bit integers come as 8-bit ones.
Result<NamedArray> adopt(const npy::Array& array, const TensorInfo& wanted) {
  NamedArray result{wanted.name, array.type, {array.data.bytes.begin(), array.data.bytes.end()}};
  const DType dtype = wanted.type.dtype;
  if (bits_of(dtype) == 4 && bits_of(array.type.dtype) == 8) {
    KILN_ASSIGN_OR_RETURN(result.bytes, cast_values(array.type, array.data.data(), dtype));
    result.type.dtype = dtype;
  } else if (array.raw && bits_of(dtype) == 8) {
    result.type.dtype = dtype;
  }
  return result;
}

// The number in NumPy's own names, arr_0, arr_1, ...
std::optional<size_t> position_in_name(std::string_view name) {
  constexpr std::string_view kPrefix = "arr_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  size_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return position;
}

class Slots {
 public:
  explicit Slots(const std::vector<TensorInfo>& tensors)
      : inputs_(tensors), arrays_(tensors.size()) {}

  std::optional<size_t> find(std::string_view name) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name == name) return i;
    }
    return std::nullopt;
  }

  // By the array's name, by NumPy's numbering, or to the only input.
  std::optional<size_t> place(const npy::Array& array, const std::filesystem::path& file) const {
    const std::string name = array.name.empty() ? file.stem().string() : array.name;
    if (const auto named = find(name)) return named;
    if (array.name.empty() && inputs_.size() == 1) return 0;
    const auto position = position_in_name(array.name);
    return position && *position < inputs_.size() ? position : std::nullopt;
  }

  Result<> fill(size_t slot, const npy::Array& array, const std::filesystem::path& file) {
    if (arrays_[slot]) {
      return invalid("input '" + inputs_[slot].name + "' is given twice, the second time by '" +
                     file.string() + "'");
    }
    KILN_ASSIGN_OR_RETURN(arrays_[slot], adopt(array, inputs_[slot]));
    return Ok();
  }

  std::string names() const {
    std::string text;
    for (const TensorInfo& input : inputs_) {
      text += (text.empty() ? "'" : ", '") + input.name + "' " + to_string(input.type);
    }
    return text.empty() ? "none" : text;
  }

  // Every input's array; `aside` has what files held besides.
  Result<std::vector<NamedArray>> take(std::span<const std::string> aside) {
    std::string missing;
    std::vector<NamedArray> arrays;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (arrays_[i]) {
        arrays.push_back(*std::move(arrays_[i]));
      } else {
        missing += (missing.empty() ? "'" : ", '") + inputs_[i].name + "'";
      }
    }
    if (missing.empty()) return arrays;
    return invalid("no array for input " + missing + "; the inputs are " + names() +
                   " (at the first shape point)" + text_of(aside));
  }

 private:
  static std::string text_of(std::span<const std::string> aside) {
    std::string text;
    for (const std::string& note : aside) text += "; " + note;
    return text;
  }

  const std::vector<TensorInfo>& inputs_;
  std::vector<std::optional<NamedArray>> arrays_;
};

Result<> fill_by_name(const NamedFile& given, Slots& slots) {
  KILN_ASSIGN_OR_RETURN(const auto arrays, npy::read_arrays(given.file));
  const auto slot = slots.find(given.name);
  if (!slot)
    return invalid("--input: no input '" + given.name + "', the inputs are " + slots.names());
  if (arrays.size() != 1) {
    return invalid("'" + given.file.string() + "' holds " + std::to_string(arrays.size()) +
                   " arrays, expected the one for input '" + given.name + "': use --inputs");
  }
  return slots.fill(*slot, arrays[0], given.file);
}

}  // namespace

Result<std::vector<NamedArray>> read_inputs(const Options& options,
                                            const std::vector<TensorInfo>& inputs,
                                            std::vector<std::string>& notes) {
  Slots slots(inputs);
  for (const auto& file : options.input_files) {
    KILN_ASSIGN_OR_RETURN(const auto arrays, npy::read_arrays(file));
    for (const npy::Array& array : arrays) {
      if (const auto slot = slots.place(array, file)) {
        KILN_RETURN_IF_ERROR(slots.fill(*slot, array, file));
        continue;
      }
      const std::string name = array.name.empty() ? "its array" : "array '" + array.name + "'";
      notes.push_back("'" + file.string() + "': " + name +
                      " is no input of the engine and was left aside");
    }
  }
  for (const NamedFile& given : options.named_inputs) {
    KILN_RETURN_IF_ERROR(fill_by_name(given, slots));
  }
  return slots.take(notes);
}

Result<std::vector<NamedArray>> read_references(const std::filesystem::path& file,
                                                const std::vector<TensorInfo>& outputs) {
  KILN_ASSIGN_OR_RETURN(const auto arrays, npy::read_arrays(file));
  const Slots slots(outputs);
  std::vector<NamedArray> result;
  for (const npy::Array& array : arrays) {
    const auto slot = slots.place(array, file);
    const TensorInfo itself{array.name, array.type};
    KILN_ASSIGN_OR_RETURN(auto reference, adopt(array, slot ? outputs[*slot] : itself));
    result.push_back(std::move(reference));
  }
  return result;
}

Result<> write_arrays(const std::filesystem::path& file, std::span<const NamedArray> arrays) {
  std::vector<npy::Array> views;
  for (const NamedArray& array : arrays) {
    views.push_back({array.name, array.type, false, SharedBytes{nullptr, array.bytes}});
  }
  return npy::write_npz(file, views);
}

}  // namespace kiln::run
