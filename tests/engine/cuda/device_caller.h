// DeviceCaller: a caller of an engine whose tensors are in device memory, with a stream of its own.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "engine/cuda/addresses.h"
#include "engine/cuda/owned.h"
#include "tests/engine/made_up_request.h"

namespace kiln::testing {

class DeviceCaller {
 public:
  // `bytes` of device memory for the tensors of one request at a time.
  static Result<DeviceCaller> make(const std::shared_ptr<const cuda::Device>& device,
                                   uint64_t bytes) {
    DeviceCaller caller;
    caller.device_ = device;
    caller.bytes_ = bytes;
    KILN_ASSIGN_OR_RETURN(caller.memory_, cuda::allocate(device, bytes, "a caller's tensors"));
    KILN_ASSIGN_OR_RETURN(caller.stream_, cuda::create_stream(device));
    return caller;
  }

  // Puts the copies of a request's inputs into the stream. Every tensor starts `shift` elements
  // behind an address that is aligned to 256 bytes: callers owe an element's alignment alone.
  Result<> upload(const Engine& engine, const MadeUpRequest& request, uint64_t shift) {
    const cuda::CurrentDevice current(*device_);
    KILN_ASSIGN_OR_RETURN(answer_, make_answer(engine, request));
    inputs_.clear();
    outputs_.clear();
    uint64_t end = 0;
    for (size_t i = 0; i < request.infos.size(); ++i) {
      KILN_RETURN_IF_ERROR(place(request.infos[i], shift, end, inputs_));
      KILN_RETURN_IF_ERROR(
          copy(inputs_.back().data, request.inputs[i].data(), request.inputs[i].size()));
    }
    for (size_t i = 0; i < answer_.infos.size(); ++i) {
      KILN_RETURN_IF_ERROR(place(answer_.infos[i], shift, end, outputs_));
      KILN_RETURN_IF_ERROR(
          copy(outputs_.back().data, answer_.outputs[i].data(), answer_.outputs[i].size()));
    }
    return Ok();
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  Stream stream() const { return {stream_.get()}; }

  // Waits for the stream.
  Result<> finish() const {
    const cuda::CurrentDevice current(*device_);
    return device_->check(device_->driver().stream_synchronize(stream_.get()), "a caller's stream");
  }

  // What the outputs hold once the stream is done.
  Result<Answer> download() {
    const cuda::CurrentDevice current(*device_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      KILN_RETURN_IF_ERROR(
          copy(answer_.outputs[i].data(), outputs_[i].data, answer_.outputs[i].size()));
    }
    KILN_RETURN_IF_ERROR(finish());
    return std::move(answer_);
  }

 private:
  Result<> place(const TensorInfo& info, uint64_t shift, uint64_t& end,
                 std::vector<Tensor>& tensors) const {
    const uint64_t at = end + shift * static_cast<uint64_t>(bits_of(info.type.dtype)) / 8;
    end = (at + static_cast<uint64_t>(info.type.bytes()) + 255) / 256 * 256;
    if (end > bytes_) return Error{ErrorCode::kInternal, "the caller's memory is too small"};
    tensors.push_back(
        {info.name, info.type, cuda::pointer_to(memory_.get() + at), MemoryKind::kDevice});
    return Ok();
  }
  Result<> copy(void* to, const void* from, size_t bytes) const {
    return device_->check(device_->driver().memcpy_async(
                              cuda::address_of(to), cuda::address_of(from), bytes, stream_.get()),
                          "copy of a caller's tensor");
  }

  std::shared_ptr<const cuda::Device> device_;
  uint64_t bytes_ = 0;
  cuda::DeviceMemory memory_;
  cuda::OwnedStream stream_;
  std::vector<Tensor> inputs_, outputs_;
  Answer answer_;
};

}  // namespace kiln::testing
