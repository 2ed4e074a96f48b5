// Memory: buffers are read and written in packs of kCount elements.

template <class D, int kCount>
struct Pack {
  static constexpr int kBytes = (D::kBits * kCount + 7) / 8;
  static constexpr int kWords = (kBytes + 3) / 4;
  unsigned words[kWords] = {};
};

// An element's bits, in the low end.
template <class D, int kCount>
KILN_DEVICE auto code_at(const Pack<D, kCount>& pack, int at) {
  if constexpr (D::kBits == 64) {
    return pack.words[2 * at] | static_cast<unsigned long long>(pack.words[2 * at + 1]) << 32;
  } else if constexpr (D::kBits == 32) {
    return pack.words[at];
  } else {
    constexpr int kPerWord = 32 / D::kBits;
    const unsigned word = pack.words[at / kPerWord] >> (at % kPerWord * D::kBits);
    return word & ((1u << D::kBits) - 1);
  }
}

template <class D, int kCount>
KILN_DEVICE Reg<D> get(const Pack<D, kCount>& pack, int at) {
  return D::decode(code_at(pack, at));
}

// One element as it lies in memory; 4-bit ones take a byte.
template <class D>
using Bits = typename Choose<D::kBits == 64, unsigned long long,
                             typename Choose<D::kBits == 32, unsigned,
                                             typename Choose<D::kBits == 16, unsigned short,
                                                             unsigned char>::Type>::Type>::Type;

template <class D, int kCount>
KILN_DEVICE Bits<D> bits_at(const Pack<D, kCount>& pack, int at) {
  return static_cast<Bits<D>>(code_at(pack, at));
}

// REQUIRES: the pack's element was not put before.
template <class D, int kCount>
KILN_DEVICE void put(Pack<D, kCount>& pack, int at, typename D::Reg value, bool saturate = true) {
  const auto bits = D::encode(value, saturate);
  if constexpr (D::kBits == 64) {
    pack.words[2 * at] = static_cast<unsigned>(bits);
    pack.words[2 * at + 1] = static_cast<unsigned>(bits >> 32);
  } else if constexpr (D::kBits == 32) {
    pack.words[at] = bits;
  } else {
    constexpr int kPerWord = 32 / D::kBits;
    const unsigned mask = (1u << D::kBits) - 1;
    pack.words[at / kPerWord] |= (bits & mask) << (at % kPerWord * D::kBits);
  }
}

template <class D, int kCount>
KILN_DEVICE Pack<D, kCount> splat(typename D::Reg value) {
  Pack<D, kCount> pack;
#pragma unroll
  for (int at = 0; at < kCount; ++at) put(pack, at, value);
  return pack;
}

// REQUIRES: elements from `at` on lie on a boundary of the pack's size, 16 bytes at most; for
// `kOnce` the pack has whole bytes.
template <class D, int kCount, bool kOnce = false, class Index>
KILN_DEVICE Pack<D, kCount> load(const void* buffer, Index at) {
  Pack<D, kCount> pack;
  if constexpr (D::kBits * kCount == 4) {
    load_words<1>(static_cast<const char*>(buffer) + at / 2, pack.words);
    pack.words[0] = pack.words[0] >> (at % 2 * 4) & 0xF;
  } else {
    const long long offset = static_cast<long long>(at) * D::kBits / 8;
    load_words<Pack<D, kCount>::kBytes, kOnce>(static_cast<const char*>(buffer) + offset,
                                               pack.words);
  }
  return pack;
}

template <bool kOnce = false, class D, int kCount, class Index>
KILN_DEVICE void store(void* buffer, Index at, const Pack<D, kCount>& pack) {
  if constexpr (D::kBits * kCount == 4) {
    store_half_byte(buffer, at, pack.words[0]);
  } else {
    const long long offset = static_cast<long long>(at) * D::kBits / 8;
    store_words<Pack<D, kCount>::kBytes, kOnce>(static_cast<char*>(buffer) + offset, pack.words);
  }
}

// The same for elements that nothing else touches.
template <class D, int kCount, class Index>
KILN_DEVICE Pack<D, kCount> load_once(const void* buffer, Index at) {
  return load<D, kCount, true>(buffer, at);
}
template <class D, int kCount, class Index>
KILN_DEVICE void store_once(void* buffer, Index at, const Pack<D, kCount>& pack) {
  store<true>(buffer, at, pack);
}

template <class D, class Index>
KILN_DEVICE typename D::Reg read(const void* buffer, Index at) {
  return get(load<D, 1>(buffer, at), 0);
}

template <class D, class Index>
KILN_DEVICE void write(void* buffer, Index at, typename D::Reg value, bool saturate = true) {
  Pack<D, 1> pack;
  put(pack, 0, value, saturate);
  store(buffer, at, pack);
}

// A gathered index outside of its range reads an element inside.
template <class Index, class Value>
KILN_DEVICE Index clamped(Value index, Index extent) {
  if (index < 0) return 0;
  return index < static_cast<Value>(extent) ? static_cast<Index>(index) : extent - 1;
}
