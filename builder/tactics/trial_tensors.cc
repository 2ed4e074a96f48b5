#include "builder/tactics/trial_tensors.h"

#include <algorithm>

namespace kiln {
namespace {

constexpr size_t kRedZone = 256;  // bytes on each side of an output
constexpr std::byte kRedZoneByte{0xCB};
constexpr size_t kAlignment = 256;

}  // namespace

void TrialTensors::lay_out(std::span<const HostTensor> inputs,
                           std::span<const HostTensor> outputs) {
  given_ = inputs;
  inputs_.clear();
  outputs_.clear();
  bytes_ = 0;
  filled_ = false;
  const auto place = [&](const HostTensor& tensor, size_t around) {
    const Piece piece{bytes_ + around, static_cast<size_t>(tensor.type.bytes())};
    bytes_ = (piece.at + piece.bytes + around + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  };
  for (const HostTensor& tensor : inputs) inputs_.push_back(place(tensor, 0));
  for (const HostTensor& tensor : outputs) outputs_.push_back(place(tensor, kRedZone));
}

Result<> TrialTensors::place(const Engine& engine) {
  if (filled_) return Ok();
  if (block_bytes_ < bytes_) {
    block_.reset();
    block_bytes_ = 0;
    KILN_ASSIGN_OR_RETURN(block_, engine.allocate(MemoryKind::kHost, bytes_));
    block_bytes_ = bytes_;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    std::copy_n(given_[i].bytes.data(), inputs_[i].bytes, input(i));
  }
  filled_ = true;
  return Ok();
}

void TrialTensors::poison_outputs() {
  for (const Piece& piece : outputs_) {
    std::fill_n(block_.get() + piece.at - kRedZone, piece.bytes + 2 * kRedZone, kRedZoneByte);
  }
}

bool TrialTensors::intact(size_t i) const {
  const Piece& piece = outputs_[i];
  const auto clean = [&](size_t from) {
    const std::byte* begin = block_.get() + from;
    return std::all_of(begin, begin + kRedZone, [](std::byte b) { return b == kRedZoneByte; });
  };
  return clean(piece.at - kRedZone) && clean(piece.at + piece.bytes);
}

}  // namespace kiln
