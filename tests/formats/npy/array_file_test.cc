#include "formats/npy/array_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/environment.h"
#include "tests/scratch_folder.h"

namespace kiln::npy {
namespace {

namespace fs = std::filesystem;

// NumPy's own work, in a folder of its own.
class ArrayFile : public ::testing::Test {
 protected:
  // Runs statements with `np`, `ml_dtypes` and `folder`; an assertion fails the test.
  void python(const std::string& statements) {
    std::ofstream(folder_ / "run.py") << "import sys, warnings, numpy as np, ml_dtypes\n"
                                         "warnings.simplefilter('ignore')\n"
                                         "folder = sys.argv[1] + '/'\n"
                                      << statements << "\n";
    const std::string command =
        testing::python() + " " + path("run.py") + " " + folder_.path().string();
    ASSERT_EQ(std::system(command.c_str()), 0) << statements;
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  std::vector<char> bytes_of(const char* name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testing::ScratchFolder folder_;
};

template <class T>
std::vector<T> values(const Array& array) {
  std::vector<T> result(array.data.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), array.data.data(), array.data.size());
  return result;
}

template <class T>
Array array_of(const char* name, DType dtype, Shape shape, std::vector<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, {dtype, std::move(shape)}, false, SharedBytes::take(std::move(bytes))};
}

Result<std::vector<Array>> parse(const std::vector<char>& bytes) {
  std::vector<std::byte> copy(bytes.size());
  if (!copy.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return parse_arrays(SharedBytes::take(std::move(copy)), "x");
}

TEST_F(ArrayFile, ReadsEveryDtype) {
  python(
      "names = 'f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 ?'.split()\n"
      "np.savez(folder + 'x.npz', **{n: np.arange(6).astype(n).reshape(2, 3) for n in names},\n"
      "  bf16=np.array([1.5, -2], ml_dtypes.bfloat16),\n"
      "  e4m3=np.array([1, -2], ml_dtypes.float8_e4m3fn))");
  const auto arrays = read_arrays(path("x.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.error().message;
  const std::vector<std::pair<const char*, DType>> expected = {
      {"f4", DType::kF32}, {"f8", DType::kF64}, {"f2", DType::kF16}, {"i1", DType::kI8},
      {"i2", DType::kI16}, {"i4", DType::kI32}, {"i8", DType::kI64}, {"u1", DType::kU8},
      {"u2", DType::kU16}, {"u4", DType::kU32}, {"u8", DType::kU64}, {"?", DType::kBool}};
  ASSERT_EQ(arrays->size(), expected.size() + 2);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*arrays)[i].name, expected[i].first);
    EXPECT_EQ((*arrays)[i].type, (TensorType{expected[i].second, {2, 3}}));
  }
  EXPECT_EQ(values<float>((*arrays)[0]), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<int64_t>((*arrays)[6]), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<uint8_t>((*arrays)[11]), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ((*arrays)[12].type.dtype, DType::kBF16);
  EXPECT_EQ(values<uint16_t>((*arrays)[12]), (std::vector<uint16_t>{0x3FC0, 0xC000}));
  EXPECT_TRUE((*arrays)[13].raw);
  EXPECT_EQ(values<uint8_t>((*arrays)[13]), (std::vector<uint8_t>{0x38, 0xC0}));
}

TEST_F(ArrayFile, ReadsCompressedFortranScalarAndEmptyArrays) {
  python(
      "np.savez_compressed(folder + 'x.npz', f=np.asfortranarray(np.arange(24.).reshape(2, 3, 4)),"
      " s=np.int32(7), e=np.zeros((0, 3), np.float32), big=np.zeros(100000))");
  const auto arrays = read_arrays(path("x.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 4u);
  const auto f = values<double>((*arrays)[0]);
  ASSERT_EQ(f.size(), 24u);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(f[i], static_cast<double>(i));
  EXPECT_EQ((*arrays)[1].type, (TensorType{DType::kI32, {}}));
  EXPECT_EQ(values<int32_t>((*arrays)[1]), std::vector<int32_t>{7});
  EXPECT_EQ((*arrays)[2].type, (TensorType{DType::kF32, {0, 3}}));
  EXPECT_EQ(values<double>((*arrays)[3]), std::vector<double>(100000));
}

TEST_F(ArrayFile, NumpyReadsWhatIsWritten) {
  const Array arrays[] = {
      array_of<float>("logits/0", DType::kF32, {2, 1}, {1.5f, -3}),
      array_of<int64_t>("n", DType::kI64, {}, {-5}),
      array_of<uint16_t>("b", DType::kBF16, {1}, {0x3FC0}),
      array_of<uint8_t>("i4", DType::kI4, {3}, {0xF1, 0x07}),
      array_of<uint8_t>("mask", DType::kBool, {0, 2}, {}),
  };
  ASSERT_TRUE(write_npz(path("y.npz"), arrays).ok());
  ASSERT_TRUE(write_npy(path("y.npy"), arrays[0]).ok());
  python(
      "y = np.load(folder + 'y.npz')\n"
      "assert y.files == ['logits/0', 'n', 'b', 'i4', 'mask'], y.files\n"
      "assert y['logits/0'].dtype == np.float32 and y['logits/0'].tolist() == [[1.5], [-3]]\n"
      "assert y['n'].shape == () and y['n'] == -5\n"
      "assert y['b'].view(ml_dtypes.bfloat16)[0] == 1.5\n"
      "assert y['i4'].dtype == np.int8 and y['i4'].tolist() == [1, -1, 7]\n"
      "assert y['mask'].shape == (0, 2) and y['mask'].dtype == bool\n"
      "assert np.load(folder + 'y.npy').tolist() == [[1.5], [-3]]");
}

TEST_F(ArrayFile, RefusesWhatIsNoPlainArray) {
  python(
      "np.save(folder + 'o.npy', np.array([{}], object), allow_pickle=True)\n"
      "np.save(folder + 'big.npy', np.arange(3).astype('>i4'))\n"
      "np.save(folder + 's.npy', np.zeros(2, [('a', 'f4')]))\n"
      "np.save(folder + 'text.npy', np.array(['ab']))");
  const std::pair<const char*, const char*> cases[] = {{"o.npy", "its dtype is '|O'"},
                                                       {"big.npy", "big-endian"},
                                                       {"s.npy", "its type is structured"},
                                                       {"text.npy", "its dtype is '<U2'"}};
  for (const auto& [name, reason] : cases) {
    const auto arrays = read_arrays(path(name));
    ASSERT_FALSE(arrays.ok()) << name;
    EXPECT_EQ(arrays.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(arrays.error().message.find(name), std::string::npos) << arrays.error().message;
    EXPECT_NE(arrays.error().message.find(reason), std::string::npos) << arrays.error().message;
  }
  EXPECT_EQ(read_arrays(path("none.npz")).error().code, ErrorCode::kIo);
  std::ofstream(path("empty.npy")).flush();
  EXPECT_EQ(read_arrays(path("empty.npy")).error().code, ErrorCode::kCorruptData);
}

// Damage must give an error or arrays, never a crash or an allocation as large as it claims. The
// npz files carry checksums, so there any change of the content is found.
TEST_F(ArrayFile, SurvivesDamage) {
  python(
      "np.savez(folder + 's.npz', a=np.arange(20.), b=np.ones((2, 2)))\n"
      "np.savez_compressed(folder + 'c.npz', a=np.arange(20.), b=np.ones((2, 2)))\n"
      "np.save(folder + 'n.npy', np.arange(20.))");
  for (const char* name : {"s.npz", "c.npz", "n.npy"}) {
    const std::vector<char> whole = bytes_of(name);
    ASSERT_TRUE(parse(whole).ok());
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(parse({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)}).ok())
          << name << " cut to " << length;
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::vector<char> damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        const auto arrays = parse(damaged);
        if (!arrays.ok()) continue;
        for (const Array& array : *arrays) {
          EXPECT_EQ(static_cast<uint64_t>(array.type.bytes()), array.data.size());
        }
      }
    }
  }
}

TEST_F(ArrayFile, ChecksClaimsBeforeAllocating) {
  python(
      "np.save(folder + 'x.npy', np.zeros(4, np.float32))\n"
      "np.savez_compressed(folder + 'x.npz', x=np.zeros(4, np.float32))");
  std::vector<char> npy = bytes_of("x.npy");
  const std::string_view shape = "(4,), }      ";
  const auto at = std::search(npy.begin(), npy.end(), shape.begin(), shape.end());
  ASSERT_NE(at, npy.end());
  const std::string_view huge = "(9999999999,)";
  std::copy(huge.begin(), huge.end(), at);
  EXPECT_FALSE(parse(npy).ok());
  *(at + 13) = '}';
  const auto claimed = parse(npy);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().message,
            "read 'x': it holds 16 bytes of data, expected those of f32[9999999999]");

  std::vector<char> npz = bytes_of("x.npz");
  const std::string_view central = "PK\x01\x02";
  const auto entry = std::search(npz.begin(), npz.end(), central.begin(), central.end());
  ASSERT_NE(entry, npz.end());
  std::fill_n(entry + 24, 3, '\xFF');  // unpacked: 16 MB
  const auto bomb = parse(npz);
  ASSERT_FALSE(bomb.ok());
  EXPECT_NE(bomb.error().message.find("claims to unpack"), std::string::npos)
      << bomb.error().message;
}

}  // namespace
}  // namespace kiln::npy
