// Arrays in NumPy's files: .npy holds one, .npz several by name. FORMAT.md says what is taken.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/result.h"
#include "formats/shared_bytes.h"
#include "formats/tensor_type.h"

namespace kiln::npy {

struct Array {
  std::string name;  // "" for a .npy file's
  TensorType type;
  // NumPy has no name for 8-bit floats: ml_dtypes stores them as single bytes. Such an array reads
  // as u8 with `raw` set: whoever knows the type takes the bits as they are.
  bool raw = false;
  SharedBytes data;  // dense, row-major, type.bytes() long, aligned to its element
};

// By content, whatever the file is called. kIo: cannot be read. kUnsupported: objects, structured
// types, complex numbers, big-endian data, encrypted archives. kCorruptData: damaged. Messages name
// the file and the array. Lengths are checked before anything is allocated.
Result<std::vector<Array>> read_arrays(const std::filesystem::path& path);
// The same from memory; `name` stands for the file in messages.
Result<std::vector<Array>> parse_arrays(const SharedBytes& file, std::string_view name);

// Writes arrays as NumPy would: bf16 and 8-bit floats as raw bytes, 4-bit integers as 8-bit ones.
// The file appears whole or not at all. Archives are stored uncompressed and hold at most 4 GiB.
Result<> write_npz(const std::filesystem::path& path, std::span<const Array> arrays);
Result<> write_npy(const std::filesystem::path& path, const Array& array);

}  // namespace kiln::npy
