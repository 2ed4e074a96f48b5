// The container of an engine file: header, section table, sections. It knows nothing of what the
// sections hold. FORMAT.md has the bytes.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/result.h"

namespace kiln::engine_file {

inline constexpr std::array<unsigned char, 8> kMagic = {0x89, 'K', 'I', 'L', 'N', '\r', '\n', 0x1a};
// The version that is written. Readers take this one and all older ones.
inline constexpr uint32_t kFormatVersion = 1;

enum class SectionId : uint32_t { kPlan = 1, kBlobs = 2, kReport = 3, kWeights = 4 };
inline constexpr std::array kSections = {SectionId::kPlan, SectionId::kBlobs, SectionId::kReport,
                                         SectionId::kWeights};
// "plan", "blobs", ...
std::string_view to_string(SectionId id);
// Of a section's start in the file: 4096 for the weights, 64 for the others.
uint64_t alignment_of(SectionId id);

// On disk, little-endian.
struct Header {
  std::array<unsigned char, 8> magic = kMagic;
  uint32_t version = kFormatVersion;
  uint32_t section_count = kSections.size();
  uint64_t file_bytes = 0;
  uint64_t checksum = 0;  // xxh3-64 of the header, with 0 here, and the section table
};
struct SectionEntry {
  uint32_t id = 0;
  uint32_t reserved = 0;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // xxh3-64 of the section
};
static_assert(sizeof(Header) == 32 && sizeof(SectionEntry) == 32);
inline constexpr size_t kHeaderBytes = sizeof(Header) + kSections.size() * sizeof(SectionEntry);

using Bytes = std::span<const std::byte>;
using Sections = std::array<Bytes, kSections.size()>;  // in the order of kSections

uint64_t checksum_of(Bytes bytes);
// Of a header and the section table that follows it, as they are on disk.
uint64_t header_checksum(std::span<const std::byte, kHeaderBytes> header_and_table);

// Header and table for these sections; the file is this, then each section at its offset with zeros
// between.
struct Layout {
  std::array<std::byte, kHeaderBytes> head;
  std::array<uint64_t, kSections.size()> offsets;
};
Layout lay_out(const Sections& sections);

// Finds and checks the sections of a file. The checksum of the weights is left out on request: it
// costs a read of the whole file. Errors say which field or section is wrong, found and expected.
Result<Sections> find_sections(Bytes file, bool check_weights);

}  // namespace kiln::engine_file
