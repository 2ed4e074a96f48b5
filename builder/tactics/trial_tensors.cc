#include "builder/tactics/trial_tensors.h"

#include <algorithm>
#include <cstdlib>

namespace kiln {
namespace {

constexpr size_t kAlignment = 256;

class HostTrialTensors : public TrialTensors {
 public:
  Result<> place(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs) override {
    want_ = outputs;
    layout_ = lay_out_trial(inputs, outputs);
    if (block_bytes_ < layout_.bytes) {
      block_.reset();
      block_bytes_ = 0;
      block_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, layout_.bytes)));
      if (!block_) {
        return Error{ErrorCode::kOutOfMemory,
                     "no " + std::to_string(layout_.bytes) + " bytes for a region's tensors"};
      }
      block_bytes_ = layout_.bytes;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::copy_n(inputs[i].bytes.data(), layout_.inputs[i].bytes, input(i));
    }
    return Ok();
  }

  MemoryKind memory() const override { return MemoryKind::kHost; }
  std::byte* input(size_t i) override { return block_.get() + layout_.inputs[i].at; }
  std::byte* output(size_t i) override { return block_.get() + layout_.outputs[i].at; }

  Result<> poison_outputs() override {
    for (size_t i = 0; i < layout_.outputs.size(); ++i) {
      std::fill_n(output(i) - TrialLayout::kRedZone,
                  layout_.outputs[i].bytes + 2 * TrialLayout::kRedZone, TrialLayout::kRedZoneByte);
    }
    return Ok();
  }

  Result<Comparison> check_output(size_t i, const AccuracyPolicy& policy) override {
    const std::byte* begin = output(i);
    constexpr size_t kZone = TrialLayout::kRedZone;
    KILN_RETURN_IF_ERROR(check_red_zone({begin - kZone, kZone}, i));
    KILN_RETURN_IF_ERROR(check_red_zone({begin + layout_.outputs[i].bytes, kZone}, i));
    return compare(want_[i].type, begin, want_[i].bytes.data(), policy);
  }

 private:
  TrialLayout layout_;
  std::span<const HostTensor> want_;
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  std::unique_ptr<std::byte, Free> block_;  // kept from region to region: it is slow to take
  size_t block_bytes_ = 0;
};

}  // namespace

TrialLayout lay_out_trial(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs) {
  TrialLayout layout;
  const auto place = [&](const HostTensor& tensor, size_t around) {
    const TrialLayout::Piece piece{layout.bytes + around, static_cast<size_t>(tensor.type.bytes())};
    layout.bytes = (piece.at + piece.bytes + around + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  };
  for (const HostTensor& tensor : inputs) layout.inputs.push_back(place(tensor, 0));
  for (const HostTensor& tensor : outputs) {
    layout.outputs.push_back(place(tensor, TrialLayout::kRedZone));
  }
  return layout;
}

Result<> check_red_zone(std::span<const std::byte> zone, size_t i) {
  if (std::ranges::all_of(zone, [](std::byte b) { return b == TrialLayout::kRedZoneByte; })) {
    return Ok();
  }
  return Error{ErrorCode::kVerification, "wrote outside of output " + std::to_string(i)};
}

std::unique_ptr<TrialTensors> make_host_trial_tensors() {
  return std::make_unique<HostTrialTensors>();
}

}  // namespace kiln
