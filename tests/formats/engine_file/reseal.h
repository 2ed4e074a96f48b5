// Damage that a checksum cannot find: changed bytes under right checksums.
#pragma once
#include <cstring>
#include <vector>

#include "formats/engine_file/container.h"

namespace kiln::testing {

// Recomputes the checksums of every section whose entry lies within the file, and the header's.
inline void reseal(std::vector<std::byte>& file) {
  using engine_file::SectionEntry;
  if (file.size() < engine_file::kHeaderBytes) return;
  for (size_t i = 0; i < engine_file::kSections.size(); ++i) {
    std::byte* at = file.data() + sizeof(engine_file::Header) + i * sizeof(SectionEntry);
    SectionEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.offset > file.size() || entry.bytes > file.size() - entry.offset) continue;
    entry.checksum =
        engine_file::checksum_of({file.data() + entry.offset, static_cast<size_t>(entry.bytes)});
    std::memcpy(at, &entry, sizeof(entry));
  }
  engine_file::Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.checksum =
      engine_file::header_checksum(std::span<const std::byte, engine_file::kHeaderBytes>(
          file.data(), engine_file::kHeaderBytes));
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace kiln::testing
