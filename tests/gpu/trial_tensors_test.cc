// What candidates are tried on, on the GPU: its comparison says what the host's says, of rows of
// any length and of values that are not finite; what is written beside an output is seen.
#include "builder/tactics/trial_tensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/cuda/addresses.h"
#include "engine/cuda/owned.h"
#include "tests/builder/random_tensors.h"
#include "tests/gpu/region_fixture.h"

namespace kiln::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

HostTensor as(DType dtype, const Shape& shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  HostTensor wide;
  wide.type = {DType::kF32, shape};
  wide.bytes = SharedBytes::take(std::move(bytes));
  auto narrow = convert_tensor(wide, dtype);
  EXPECT_TRUE(narrow.ok()) << narrow.error().message;
  return std::move(narrow).value();
}

class TrialTensorsOnGpu : public RegionsOnGpu {
 protected:
  void SetUp() override {
    RegionsOnGpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    tensors_ = target_.trial_tensors();
  }

  void place(const HostTensor& want) {
    want_ = {want};
    const auto placed = tensors_->place({}, want_);
    ASSERT_TRUE(placed.ok()) << placed.error().message;
    const auto poisoned = tensors_->poison_outputs();
    ASSERT_TRUE(poisoned.ok()) << poisoned.error().message;
  }

  // As a candidate would write it, `shift` bytes off.
  void write(const HostTensor& got, ptrdiff_t shift = 0) {
    const cuda::CurrentDevice current(*device_);
    const auto stream = cuda::create_stream(device_);
    ASSERT_TRUE(stream.ok());
    const auto& driver = device_->driver();
    ASSERT_EQ(driver.memcpy_async(cuda::address_of(tensors_->output(0) + shift),
                                  cuda::address_of(got.bytes.data()),
                                  static_cast<size_t>(got.type.bytes()), stream->get()),
              CUDA_SUCCESS);
    ASSERT_EQ(driver.stream_synchronize(stream->get()), CUDA_SUCCESS);
  }

  void expect_as_on_the_host(const HostTensor& got, const HostTensor& want,
                             const AccuracyPolicy& policy) {
    place(want);
    write(got);
    const auto found = tensors_->check_output(0, policy);
    ASSERT_TRUE(found.ok()) << found.error().message;
    const Comparison expected = compare(want.type, got.bytes.data(), want.bytes.data(), policy);
    EXPECT_EQ(found->passed, expected.passed) << expected.worst;
    EXPECT_EQ(found->rows, expected.rows);
    EXPECT_DOUBLE_EQ(found->max_abs_error, expected.max_abs_error);
    EXPECT_DOUBLE_EQ(found->max_rel_error, expected.max_rel_error);
    EXPECT_EQ(found->worst, expected.worst);
  }

  std::unique_ptr<TrialTensors> tensors_;
  std::vector<HostTensor> want_;
};

TEST_F(TrialTensorsOnGpu, CompareAsTheHostDoes) {
  std::mt19937 random(3);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI32}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{7, 1}, Shape{5, 31}, Shape{3, 2, 32},
                               Shape{700, 33}, Shape{3, 5000}, Shape{1, 300000}, Shape{0, 4}}) {
      SCOPED_TRACE(to_string(TensorType{dtype, shape}));
      const HostTensor want = test::random_tensor({dtype, shape}, random);
      const HostTensor other = test::random_tensor({dtype, shape}, random);
      expect_as_on_the_host(want, want, accuracy_for(dtype));
      expect_as_on_the_host(other, want, accuracy_for(dtype));
      expect_as_on_the_host(other, want, {100, 100, 0});
    }
  }
}

TEST_F(TrialTensorsOnGpu, CompareWhatIsNotFinite) {
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> values = {
      {1, 2, 3, 4},     {1, nan, 3, 4},       {1, kInfinity, 3, 4}, {1, -kInfinity, 3, 4},
      {0, -0.0F, 0, 0}, {nan, nan, nan, nan}, {1, 2, 3, 4.001F}};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const auto& want : values) {
      for (const auto& got : values) {
        expect_as_on_the_host(as(dtype, {2, 2}, got), as(dtype, {2, 2}, want), accuracy_for(dtype));
        expect_as_on_the_host(as(dtype, {2, 2}, got), as(dtype, {2, 2}, want), {0, 0, 0});
      }
    }
  }
}

TEST_F(TrialTensorsOnGpu, SeeWhatIsWrittenBesideAnOutput) {
  const HostTensor want = as(DType::kF32, {2, 2}, {1, 2, 3, 4});
  for (const ptrdiff_t shift : {-4, 4}) {
    place(want);
    write(want, shift);
    const auto found = tensors_->check_output(0, {});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().message, "wrote outside of output 0");
  }
}

}  // namespace
}  // namespace kiln::testing
