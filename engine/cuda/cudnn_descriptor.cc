#include "engine/cuda/cudnn_descriptor.h"

#include <algorithm>

namespace kiln::cuda {

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnn_->destroy_descriptor(descriptor_);
}

Result<int64_t> CudnnDescriptor::get_int(cudnnBackendAttributeName_t name,
                                         const std::string& what) const {
  KILN_ASSIGN_OR_RETURN(const auto values, get_ints(name, 1, what));
  if (values.size() == 1) return values[0];
  return Error{ErrorCode::kDevice, what + ": cuDNN gave no value"};
}

Result<std::vector<int64_t>> CudnnDescriptor::get_ints(cudnnBackendAttributeName_t name,
                                                       size_t most, const std::string& what) const {
  std::vector<int64_t> values(most);
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(
      check(*cudnn_,
            cudnn_->get_attribute(descriptor_, name, CUDNN_TYPE_INT64, static_cast<int64_t>(most),
                                  &count, values.data()),
            what));
  values.resize(std::clamp<int64_t>(count, 0, static_cast<int64_t>(most)));
  return values;
}

Result<std::string> CudnnDescriptor::get_text(cudnnBackendAttributeName_t name,
                                              const std::string& what) const {
  int64_t length = 0;
  KILN_RETURN_IF_ERROR(
      check(*cudnn_, cudnn_->get_attribute(descriptor_, name, CUDNN_TYPE_CHAR, 0, &length, nullptr),
            what));
  std::string text(std::max<int64_t>(length, 0), '\0');
  KILN_RETURN_IF_ERROR(
      check(*cudnn_,
            cudnn_->get_attribute(descriptor_, name, CUDNN_TYPE_CHAR, length, &length, text.data()),
            what));
  return text;
}

DescriptorWriter::DescriptorWriter(const CudnnApi& cudnn, cudnnBackendDescriptorType_t type,
                                   std::string what)
    : cudnn_(cudnn), what_(std::move(what)), state_(Ok()) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  state_ = check(cudnn_, cudnn_.create_descriptor(type, &descriptor), "making " + what_);
  if (state_.ok()) descriptor_ = CudnnDescriptor(cudnn_, descriptor);
}

DescriptorWriter& DescriptorWriter::set(cudnnBackendAttributeName_t name,
                                        cudnnBackendAttributeType_t type, size_t count,
                                        const void* values) {
  if (!state_.ok()) return *this;
  const cudnnStatus_t status =
      cudnn_.set_attribute(descriptor_.get(), name, type, static_cast<int64_t>(count), values);
  state_ = check(cudnn_, status,
                 "setting attribute " + std::to_string(static_cast<int>(name)) + " of " + what_);
  return *this;
}

DescriptorWriter& DescriptorWriter::ints(cudnnBackendAttributeName_t name,
                                         std::span<const int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, values.size(), values.data());
}

DescriptorWriter& DescriptorWriter::number(cudnnBackendAttributeName_t name, int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}

DescriptorWriter& DescriptorWriter::flag(cudnnBackendAttributeName_t name, bool value) {
  return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

DescriptorWriter& DescriptorWriter::real(cudnnBackendAttributeName_t name, double value) {
  return set(name, CUDNN_TYPE_DOUBLE, 1, &value);
}

DescriptorWriter& DescriptorWriter::descriptor(cudnnBackendAttributeName_t name,
                                               const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<const void*>(&raw));
}

DescriptorWriter& DescriptorWriter::descriptors(cudnnBackendAttributeName_t name,
                                                std::span<const cudnnBackendDescriptor_t> values) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, values.size(),
             static_cast<const void*>(values.data()));
}

DescriptorWriter& DescriptorWriter::pointers(cudnnBackendAttributeName_t name,
                                             std::span<void* const> values) {
  return set(name, CUDNN_TYPE_VOID_PTR, values.size(), static_cast<const void*>(values.data()));
}

DescriptorWriter& DescriptorWriter::handle(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  return set(name, CUDNN_TYPE_HANDLE, 1, static_cast<const void*>(&value));
}

DescriptorWriter& DescriptorWriter::text(cudnnBackendAttributeName_t name, std::string_view value) {
  return set(name, CUDNN_TYPE_CHAR, value.size(), value.data());
}

Result<CudnnDescriptor> DescriptorWriter::finish() {
  KILN_RETURN_IF_ERROR(std::move(state_));
  KILN_RETURN_IF_ERROR(check(cudnn_, cudnn_.finalize(descriptor_.get()), "finalizing " + what_));
  return std::move(descriptor_);
}

Result<CudnnDescriptor> DescriptorWriter::finish_unfinalized() {
  KILN_RETURN_IF_ERROR(std::move(state_));
  return std::move(descriptor_);
}

}  // namespace kiln::cuda
