// The part of ZIP that .npz files use: stored and deflated members, ZIP64 sizes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::npy {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t bytes = 0;                 // unpacked
  std::span<const std::byte> packed;  // within the archive
};

bool has_zip_magic(std::span<const std::byte> file);

// The directory, checked against the file: every member's bytes lie within it, no member claims to
// unpack to more than deflate can. Errors name the member.
Result<std::vector<ZipMember>> list_members(std::span<const std::byte> archive);

// The member's content, its checksum compared. A stored member is a view of the archive.
Result<SharedBytes> unpack(const ZipMember& member, const SharedBytes& archive);

// An archive of stored members as the pieces of a file. The pieces of content are the caller's.
struct ZipWriter {
  struct Content {
    std::string name;
    std::vector<std::span<const std::byte>> pieces;
  };
  // kUnsupported beyond 4 GiB.
  static Result<ZipWriter> lay_out(std::span<const Content> contents);

  std::vector<std::vector<std::byte>> records;     // owned by this
  std::vector<std::span<const std::byte>> pieces;  // the file, in order
};

}  // namespace kiln::npy
