#include "engine/cuda/io_buffers.h"

#include <algorithm>

#include "engine/cuda/addresses.h"

namespace kiln::cuda {
namespace {

constexpr uint64_t kApart = 256;  // a write beside a tensor meets no other

uint64_t round_up(uint64_t bytes) {
  return (bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
}

// `blocks` pieces of `width` bytes, `from_pitch` and `to_pitch` apart.
struct Pieces {
  uint64_t blocks = 0, width = 0, from_pitch = 0, to_pitch = 0;
};

Result<> copy_pieces(CUdeviceptr from, CUdeviceptr to, const Pieces& pieces, const RowCopy& copy) {
  const DriverApi& driver = copy.device.driver();
  if (pieces.blocks == 0 || pieces.width == 0) return Ok();
  if (pieces.blocks == 1) {
    return copy.device.check(driver.memcpy_async(to, from, pieces.width, copy.stream),
                             "copy of a request's tensor");
  }
  CUDA_MEMCPY2D region = {};
  region.srcMemoryType = region.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  region.srcDevice = from;
  region.dstDevice = to;
  region.srcPitch = pieces.from_pitch;
  region.dstPitch = pieces.to_pitch;
  region.WidthInBytes = pieces.width;
  region.Height = pieces.blocks;
  return copy.device.check(driver.memcpy_2d_async(&region, copy.stream),
                           "copy of a request's tensor");
}

}  // namespace

IoLayout lay_out_io(const plan::ShapePoint& point) {
  IoLayout layout;
  layout.end = round_up(point.arena_bytes) + kApart;
  const auto place = [&](const std::vector<TensorType>& types, std::vector<uint64_t>& offsets) {
    for (const TensorType& type : types) {
      offsets.push_back(layout.end);
      layout.end = round_up(layout.end + static_cast<uint64_t>(type.bytes())) + kApart;
    }
  };
  place(point.inputs, layout.inputs);
  place(point.outputs, layout.outputs);
  return layout;
}

Result<> copy_first_rows(const void* from, CUdeviceptr to, int64_t count, const RowCopy& copy) {
  const uint64_t row = copy.layout.row_bytes;
  return copy_pieces(
      address_of(from), to,
      {copy.layout.blocks, static_cast<uint64_t>(count) * row,
       static_cast<uint64_t>(copy.rows) * row, static_cast<uint64_t>(copy.batch) * row},
      copy);
}

Result<> copy_last_row(const void* from, CUdeviceptr to, const RowCopy& copy) {
  const uint64_t row = copy.layout.row_bytes;
  const uint64_t given = static_cast<uint64_t>(copy.rows) * row;
  const uint64_t pitch = static_cast<uint64_t>(copy.batch) * row;
  return copy_pieces(address_of(from) + given - row, to + pitch - row,
                     {copy.layout.blocks, row, given, pitch}, copy);
}

Result<> repeat_last_row(CUdeviceptr tensor, int64_t times, const RowCopy& copy) {
  const uint64_t pitch = static_cast<uint64_t>(copy.batch) * copy.layout.row_bytes;
  const CUdeviceptr end = tensor + pitch;
  // One row becomes two, two become four: few copies for any number of rows.
  for (int64_t done = 1; done < times;) {
    const int64_t more = std::min(done, times - done);
    const uint64_t width = static_cast<uint64_t>(more) * copy.layout.row_bytes;
    const uint64_t ready = static_cast<uint64_t>(done) * copy.layout.row_bytes;
    KILN_RETURN_IF_ERROR(copy_pieces(end - width, end - ready - width,
                                     {copy.layout.blocks, width, pitch, pitch}, copy));
    done += more;
  }
  return Ok();
}

Result<> copy_trimmed(CUdeviceptr from, void* to, const RowCopy& copy) {
  const uint64_t row = copy.layout.row_bytes;
  const uint64_t wanted = static_cast<uint64_t>(copy.rows) * row;
  return copy_pieces(from, address_of(to),
                     {copy.layout.blocks, wanted, static_cast<uint64_t>(copy.batch) * row, wanted},
                     copy);
}

}  // namespace kiln::cuda
