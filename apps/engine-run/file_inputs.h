// Inputs read from NumPy's files.
#pragma once
#include "apps/engine-run/named_array.h"
#include "apps/engine-run/options.h"
#include "engine/engine.h"

namespace kiln::run {

// One array for each input of the engine. Arrays of an .npz go by name, or by position where NumPy
// named them arr_0, arr_1, ...; a .npy goes to the input called like the file, or to the only one.
// Arrays that are no input are left aside with a line in `notes`. kInvalidArgument lists the inputs
// that are missing.
Result<std::vector<NamedArray>> read_inputs(const Options& options,
                                            const std::vector<TensorInfo>& inputs,
                                            std::vector<std::string>& notes);

// Expected outputs: all arrays of an .npz, or the one of a .npy for the only output.
Result<std::vector<NamedArray>> read_references(const std::filesystem::path& file,
                                                const std::vector<TensorInfo>& outputs);

Result<> write_arrays(const std::filesystem::path& file, std::span<const NamedArray> arrays);

}  // namespace kiln::run
