#include <gtest/gtest.h>

#include "tests/formats/onnx/proto_writer.h"

namespace kiln::onnx::testing {
namespace {

// Decodes one initializer named "w".
Result<Tensor> decode(const Message& proto) {
  KILN_ASSIGN_OR_RETURN(Model model, parse_model(model_of(proto, "w").span()));
  return model.graph.initializers.at(0);
}

std::string bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

struct Encoding {
  const char* name;
  int onnx_type;
  int field;
  std::string data;
  int64_t elements;
  DType dtype;
  std::string dense;
};

class EveryEncoding : public ::testing::TestWithParam<Encoding> {};

TEST_P(EveryEncoding, GivesTheDenseBytes) {
  const Encoding& e = GetParam();
  auto result = decode(tensor("w", e.onnx_type, {e.elements}).text(e.field, e.data));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->name, "w");
  EXPECT_EQ(result->type, (TensorType{e.dtype, {e.elements}}));
  EXPECT_EQ(bytes_of(*result), e.dense);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(result->data.data()) % ((bits_of(e.dtype) + 7) / 8), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    DecodeTensor, EveryEncoding,
    ::testing::Values(
        Encoding{"FloatRaw", 1, kRawData, raw<float>({1.5f, -2}), 2, DType::kF32,
                 raw<float>({1.5f, -2})},
        Encoding{"FloatTyped", 1, kFloatData, raw<float>({1.5f, -2}), 2, DType::kF32,
                 raw<float>({1.5f, -2})},
        Encoding{"DoubleTyped", 11, kDoubleData, raw<double>({1e300}), 1, DType::kF64,
                 raw<double>({1e300})},
        Encoding{"Int64Typed", 7, kInt64Data, packed({-5, int64_t{1} << 40}), 2, DType::kI64,
                 raw<int64_t>({-5, int64_t{1} << 40})},
        Encoding{"Int32Typed", 6, kInt32Data, packed({-5, 7}), 2, DType::kI32,
                 raw<int32_t>({-5, 7})},
        Encoding{"Int16Typed", 5, kInt32Data, packed({-5, 7}), 2, DType::kI16,
                 raw<int16_t>({-5, 7})},
        Encoding{"Int8Typed", 3, kInt32Data, packed({-128, 127}), 2, DType::kI8,
                 raw<int8_t>({-128, 127})},
        Encoding{"Uint8Typed", 2, kInt32Data, packed({0, 255}), 2, DType::kU8,
                 raw<uint8_t>({0, 255})},
        Encoding{"Uint16Typed", 4, kInt32Data, packed({65535}), 1, DType::kU16,
                 raw<uint16_t>({65535})},
        Encoding{"Uint32Typed", 12, kUint64Data, packed({0xffffffff}), 1, DType::kU32,
                 raw<uint32_t>({0xffffffff})},
        Encoding{"Uint64Typed", 13, kUint64Data, packed({-1}), 1, DType::kU64,
                 raw<uint64_t>({~uint64_t{0}})},
        Encoding{"Float16TypedIsBits", 10, kInt32Data, packed({0x3c00}), 1, DType::kF16,
                 raw<uint16_t>({0x3c00})},
        Encoding{"Bfloat16TypedIsBits", 16, kInt32Data, packed({0x3f80}), 1, DType::kBF16,
                 raw<uint16_t>({0x3f80})},
        Encoding{"Float8E4M3FNTyped", 17, kInt32Data, packed({0x7e}), 1, DType::kF8E4M3FN, "\x7e"},
        Encoding{"Float8E4M3FNUZTyped", 18, kInt32Data, packed({0x80}), 1, DType::kF8E4M3FNUZ,
                 "\x80"},
        Encoding{"Float8E5M2Typed", 19, kInt32Data, packed({0xfc}), 1, DType::kF8E5M2, "\xfc"},
        Encoding{"Float8E5M2FNUZTyped", 20, kInt32Data, packed({0x01}), 1, DType::kF8E5M2FNUZ,
                 "\x01"},
        Encoding{"BoolTyped", 9, kInt32Data, packed({1, 0, 1}), 3, DType::kBool,
                 std::string("\1\0\1", 3)},
        Encoding{"BoolRawIsNormalized", 9, kRawData, std::string("\7\0\xff", 3), 3, DType::kBool,
                 std::string("\1\0\1", 3)},
        Encoding{"Uint4TypedHoldsTwoAValue", 21, kInt32Data, packed({0x21, 0x03}), 3, DType::kU4,
                 "\x21\x03"},
        Encoding{"Int4Raw", 22, kRawData, "\xf8\x07", 3, DType::kI4, "\xf8\x07"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DecodeTensor, RankZeroHasOneElement) {
  auto result = decode(tensor("w", 1, {}).text(kRawData, raw<float>({3})));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->type, (TensorType{DType::kF32, {}}));
  EXPECT_EQ(*result->as<float>(), 3);
}

TEST(DecodeTensor, NoElementsNeedNoData) {
  for (const Message& proto : {tensor("w", 1, {0, 3}), tensor("w", 1, {0, 3}).text(kRawData, "")}) {
    auto result = decode(proto);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->type.elements(), 0);
    EXPECT_EQ(result->data.size(), 0u);
  }
}

TEST(DecodeTensor, BytesOutliveTheModel) {
  std::optional<Tensor> kept;
  {
    auto model =
        parse_model(model_of(tensor("w", 1, {1}).text(kRawData, raw<float>({9})), "w").span());
    ASSERT_TRUE(model.ok());
    kept = model->graph.initializers[0];
  }
  EXPECT_EQ(*kept->as<float>(), 9);
}

struct Refusal {
  const char* name;
  Message proto;
  const char* message;
};

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesTheTensorFoundAndExpected) {
  auto result = decode(GetParam().proto);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    DecodeTensor, Refused,
    ::testing::Values(
        Refusal{"RawTooLong", tensor("w", 1, {1}).text(kRawData, "12345"),
                "initializer 'w': is f32[1] and has 5 bytes in raw_data, expected 4"},
        Refusal{"NoData", tensor("w", 1, {2}),
                "initializer 'w': is f32[2] and has 0 values, expected 2 in float_data or 8 bytes "
                "in raw_data"},
        Refusal{"TooManyValues", tensor("w", 7, {1}).text(kInt64Data, packed({1, 2})),
                "initializer 'w': is i64[1] and has 2 values, expected 1 in int64_data or 8 bytes "
                "in raw_data"},
        Refusal{"RawAndTyped",
                tensor("w", 1, {1}).text(kRawData, "1234").text(kFloatData, raw<float>({1})),
                "initializer 'w': has type float and 1 values in float_data, expected raw_data "
                "alone"},
        Refusal{"Int8OutOfRange", tensor("w", 3, {1}).text(kInt32Data, packed({200})),
                "initializer 'w': int32_data has a value out of the range of int8"},
        Refusal{"BoolOutOfRange", tensor("w", 9, {1}).text(kInt32Data, packed({2})),
                "initializer 'w': int32_data has a value out of the range of bool"},
        Refusal{"Uint32OutOfRange",
                tensor("w", 12, {1}).text(kUint64Data, packed({int64_t{1} << 32})),
                "initializer 'w': uint64_data has a value out of the range of uint32"},
        Refusal{"String", tensor("w", 8, {1}).text(kStringData, "a"),
                "initializer 'w': data type string is not supported"},
        Refusal{"Undefined", tensor("w", 0, {1}),
                "initializer 'w': data type 0 is unknown, expected 1 to 28"},
        Refusal{"Segment", tensor("w", 1, {1}).message(3, Message().integer(1, 0).integer(2, 1)),
                "initializer 'w': is stored in segments, expected one piece"},
        Refusal{"HugeWithoutData", tensor("w", 1, {int64_t{1} << 50}),
                "initializer 'w': is f32[1125899906842624] and has 0 values, expected "
                "1125899906842624 in float_data or 4503599627370496 bytes in raw_data"}),
    [](const auto& info) { return std::string(info.param.name); });

// SparseTensorProto named "w": floats at int64 indices.
Message sparse(std::initializer_list<float> values, const Message& indices,
               std::initializer_list<int64_t> dims) {
  Message proto;
  proto.message(
      1,
      tensor("w", 1, {static_cast<int64_t>(values.size())}).text(kFloatData, raw<float>(values)));
  proto.message(2, indices);
  for (int64_t dim : dims) proto.integer(3, dim);
  return proto;
}

Result<Tensor> decode_sparse(const Message& proto) {
  const Message g = graph({node("n", "Identity", {"w"}, {"y"})}, {}, {"y"})
                        .message(kGraphSparseInitializer, proto);
  KILN_ASSIGN_OR_RETURN(Model decoded, parse_model(model(g).span()));
  return decoded.graph.initializers.at(0);
}

TEST(DecodeSparseTensor, PositionsGiveTheDenseForm) {
  auto result =
      decode_sparse(sparse({5, 6}, tensor("", 7, {2}).text(kInt64Data, packed({1, 3})), {2, 2}));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->name, "w");
  EXPECT_EQ(result->type, (TensorType{DType::kF32, {2, 2}}));
  EXPECT_EQ(bytes_of(*result), raw<float>({0, 5, 0, 6}));
}

TEST(DecodeSparseTensor, CoordinatesGiveTheDenseForm) {
  const Message indices = tensor("", 7, {2, 2}).text(kInt64Data, packed({0, 2, 1, 0}));
  auto result = decode_sparse(sparse({5, 6}, indices, {2, 3}));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(bytes_of(*result), raw<float>({0, 0, 5, 6, 0, 0}));
}

TEST(DecodeSparseTensor, RefusesAnIndexOutside) {
  auto result = decode_sparse(sparse({5}, tensor("", 7, {1}).text(kInt64Data, packed({4})), {4}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "initializer 'w': has index 4 in a dimension of 4");
}

TEST(DecodeSparseTensor, RefusesUnsortedIndices) {
  auto result =
      decode_sparse(sparse({5, 6}, tensor("", 7, {2}).text(kInt64Data, packed({3, 3})), {4}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "initializer 'w': has indices that do not rise, at value 1");
}

TEST(DecodeSparseTensor, RefusesADenseFormOutOfProportion) {
  const Message indices = tensor("", 7, {1}).text(kInt64Data, packed({0}));
  auto result = decode_sparse(sparse({5}, indices, {int64_t{1} << 40}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message.find("1099511627776 elements in dense form"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace kiln::onnx::testing
