// Damaged engine files: always a clear error or the very plan that was written.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "formats/engine_file/read_engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/formats/engine_file/reseal.h"

namespace kiln {
namespace {

// A file for each target: the CUDA steps have fields of their own.
class DamagedEngine : public ::testing::TestWithParam<plan::Target> {
 protected:
  static std::vector<std::byte> whole_file() {
    return *to_bytes(GetParam() == plan::Target::kHost ? testing::affine_plan({1, 4})
                                                       : testing::launch_plan({1, 4}));
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, DamagedEngine,
                         ::testing::Values(plan::Target::kHost, plan::Target::kCuda),
                         [](const auto& info) {
                           return info.param == plan::Target::kHost ? "Host" : "Cuda";
                         });

void expect_clear_error(const std::vector<std::byte>& bytes, const std::string& what) {
  const auto read = parse_engine(SharedBytes::take(bytes), "m.engine");
  ASSERT_FALSE(read) << what << " was accepted";
  EXPECT_TRUE(read.error().code == ErrorCode::kCorruptData ||
              read.error().code == ErrorCode::kVersionMismatch)
      << what << ": " << read.error().message;
  EXPECT_EQ(read.error().message.rfind("engine 'm.engine': ", 0), 0u) << read.error().message;
}

// Starts and ends of header, table entries and sections, and their neighbours.
std::set<size_t> edges(const std::vector<std::byte>& file) {
  std::set<size_t> edges = {0, 8, 16, 24, 32, 64, 96, 128, engine_file::kHeaderBytes};
  const auto sections = *engine_file::find_sections(file, true);
  for (const auto& section : sections) {
    const auto start = static_cast<size_t>(section.data() - file.data());
    edges.insert({start, start + section.size()});
  }
  std::set<size_t> near;
  for (size_t edge : edges) {
    for (size_t at : {edge - 1, edge, edge + 1}) {
      if (at < file.size()) near.insert(at);
    }
  }
  return near;
}

TEST_P(DamagedEngine, TruncationIsNoticed) {
  const auto file = whole_file();
  const auto cuts = edges(file);
  ASSERT_GT(cuts.size(), 30u);
  for (size_t cut : cuts) {
    std::vector<std::byte> shorter(file.begin(), file.begin() + static_cast<ptrdiff_t>(cut));
    expect_clear_error(shorter, "file cut at " + std::to_string(cut));
    engine_file::Header header;
    if (cut < engine_file::kHeaderBytes) continue;
    std::memcpy(&header, shorter.data(), sizeof(header));
    header.file_bytes = cut;
    std::memcpy(shorter.data(), &header, sizeof(header));
    testing::reseal(shorter);
    expect_clear_error(shorter, "resealed file cut at " + std::to_string(cut));
  }
}

TEST_P(DamagedEngine, GrowthIsNoticed) {
  auto file = whole_file();
  file.push_back(std::byte{});
  expect_clear_error(file, "a longer file");
}

TEST_P(DamagedEngine, EveryHeaderBitIsNoticed) {
  const auto file = whole_file();
  for (size_t bit = 0; bit < engine_file::kHeaderBytes * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    expect_clear_error(damaged, "header bit " + std::to_string(bit));
  }
}

// Whether a header bit belongs to the length of a section.
bool is_section_length(size_t bit) {
  const size_t byte = bit / 8;
  return byte >= sizeof(engine_file::Header) && byte % 32 / 8 == 2;
}

// Under right checksums a shorter section is one that its author meant; every other bit is noticed
// but for those of checksums, which resealing repairs.
TEST_P(DamagedEngine, EveryResealedHeaderBitIsNoticed) {
  const auto file = whole_file();
  for (size_t bit = 0; bit < engine_file::kHeaderBytes * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    testing::reseal(damaged);
    if (damaged == file) continue;
    if (is_section_length(bit) && parse_engine(SharedBytes::take(damaged), "m.engine")) continue;
    expect_clear_error(damaged, "resealed header bit " + std::to_string(bit));
  }
}

TEST_P(DamagedEngine, RandomFlipsAreNoticed) {
  const auto file = whole_file();
  std::mt19937_64 random(1);
  for (int round = 0; round < 10'000; ++round) {
    auto damaged = file;
    const size_t bit = random() % (file.size() * 8);
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    expect_clear_error(damaged, "bit " + std::to_string(bit));
  }
}

// Checksums hide nothing here: what is accepted must be a plan that passes every check.
TEST_P(DamagedEngine, ResealedFlipsAreErrorsOrPlans) {
  const auto file = whole_file();
  const auto plan_bytes = (*engine_file::find_sections(file, true))[0];
  const auto start = static_cast<size_t>(plan_bytes.data() - file.data());
  std::mt19937_64 random(2);
  int accepted = 0;
  for (int round = 0; round < 10'000; ++round) {
    auto damaged = file;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      const size_t bit = random() % (plan_bytes.size() * 8);
      damaged[start + bit / 8] ^= std::byte(1 << bit % 8);
    }
    testing::reseal(damaged);
    const auto read = parse_engine(SharedBytes::take(std::move(damaged)), "m.engine");
    if (read) {
      ++accepted;
    } else {
      EXPECT_EQ(read.error().code, ErrorCode::kCorruptData);
      EXPECT_EQ(read.error().message.rfind("engine 'm.engine': section 'plan'", 0), 0u)
          << read.error().message;
    }
  }
  EXPECT_GT(accepted, 0);  // a changed name or flag is a plan too
  EXPECT_LT(accepted, 8'000);
}

TEST_P(DamagedEngine, RandomBytesAreErrors) {
  const auto file = whole_file();
  const auto plan_bytes = (*engine_file::find_sections(file, true))[0];
  const auto start = static_cast<size_t>(plan_bytes.data() - file.data());
  std::mt19937_64 random(3);
  for (int round = 0; round < 2'000; ++round) {
    auto damaged = file;
    const size_t from = random() % plan_bytes.size();
    for (size_t i = from; i < plan_bytes.size(); ++i) damaged[start + i] = std::byte(random());
    testing::reseal(damaged);
    (void)parse_engine(SharedBytes::take(std::move(damaged)), "m.engine");
  }
}

}  // namespace
}  // namespace kiln
