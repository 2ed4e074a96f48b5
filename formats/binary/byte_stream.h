// ByteWriter and ByteReader: the primitives of our small binary forms (an operation, a loop
// kernel). Integers are LEB128 varints, signed ones zigzag first; each value has one spelling, and
// the reader refuses the others, so equal values mean equal bytes.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

class ByteWriter {
 public:
  void byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void unsigned_int(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value) | 0x80);
    byte(static_cast<uint8_t>(value));
  }
  void signed_int(int64_t value) {
    unsigned_int((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void fixed64(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void real(double value) { fixed64(std::bit_cast<uint64_t>(value)); }
  void string(std::string_view value) {
    unsigned_int(value.size());
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After a failed read every further read yields zero or empty, and ok() stays false: check ok()
// before a value decides about memory, and at the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return ok_ && position_ == bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  void fail() { ok_ = false; }

  uint8_t byte() {
    if (!ok_ || remaining() == 0) return ok_ = false, uint8_t{0};
    return static_cast<uint8_t>(bytes_[position_++]);
  }
  uint64_t unsigned_int() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      const uint64_t bits = next & 0x7f;
      const bool overlong = next == 0 && shift > 0;
      if (overlong || (shift == 63 && bits > 1)) break;
      value |= bits << shift;
      if ((next & 0x80) == 0) return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  int64_t signed_int() {
    const uint64_t value = unsigned_int();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  uint64_t fixed64() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{byte()} << (8 * i);
    return ok_ ? value : 0;
  }
  double real() { return std::bit_cast<double>(fixed64()); }
  std::string string() {
    const uint64_t size = count(1);
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + position_, size);
    position_ += size;
    return value;
  }
  // The length of a list whose items take at least `item_bytes` each: one that cannot fit into
  // what is left is refused here, before memory is allocated for it.
  uint64_t count(size_t item_bytes) {
    const uint64_t value = unsigned_int();
    if (value > remaining() / item_bytes) ok_ = false;
    return ok_ ? value : 0;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace kiln
