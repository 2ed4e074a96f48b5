#include "engine/host/lanes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/host/dtype_conversion.h"

namespace kiln::host {
namespace {

template <DType kDType>
struct Typed {
  static constexpr DType dtype = kDType;
};

// Calls visit(Typed<dtype>{}).
template <class Visit>
void visit_dtype(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(Typed<DType::kF32>{});
    case DType::kF64:
      return visit(Typed<DType::kF64>{});
    case DType::kF16:
      return visit(Typed<DType::kF16>{});
    case DType::kBF16:
      return visit(Typed<DType::kBF16>{});
    case DType::kF8E4M3FN:
      return visit(Typed<DType::kF8E4M3FN>{});
    case DType::kF8E4M3FNUZ:
      return visit(Typed<DType::kF8E4M3FNUZ>{});
    case DType::kF8E5M2:
      return visit(Typed<DType::kF8E5M2>{});
    case DType::kF8E5M2FNUZ:
      return visit(Typed<DType::kF8E5M2FNUZ>{});
    case DType::kI8:
      return visit(Typed<DType::kI8>{});
    case DType::kI16:
      return visit(Typed<DType::kI16>{});
    case DType::kI32:
      return visit(Typed<DType::kI32>{});
    case DType::kI64:
      return visit(Typed<DType::kI64>{});
    case DType::kU8:
      return visit(Typed<DType::kU8>{});
    case DType::kU16:
      return visit(Typed<DType::kU16>{});
    case DType::kU32:
      return visit(Typed<DType::kU32>{});
    case DType::kU64:
      return visit(Typed<DType::kU64>{});
    case DType::kBool:
      return visit(Typed<DType::kBool>{});
    case DType::kI4:
      return visit(Typed<DType::kI4>{});
    case DType::kU4:
      return visit(Typed<DType::kU4>{});
  }
}

template <DType kDType>
auto storage_example() {
  if constexpr (kDType == DType::kF32)
    return float{};
  else if constexpr (kDType == DType::kF64)
    return double{};
  else if constexpr (kDType == DType::kF16 || kDType == DType::kBF16)
    return uint16_t{};
  else if constexpr (kDType == DType::kI8)
    return int8_t{};
  else if constexpr (kDType == DType::kI16)
    return int16_t{};
  else if constexpr (kDType == DType::kI32)
    return int32_t{};
  else if constexpr (kDType == DType::kI64)
    return int64_t{};
  else if constexpr (kDType == DType::kU16)
    return uint16_t{};
  else if constexpr (kDType == DType::kU32)
    return uint32_t{};
  else if constexpr (kDType == DType::kU64)
    return uint64_t{};
  else
    return uint8_t{};
}
template <DType kDType>
using Storage = decltype(storage_example<kDType>());

template <DType kDType>
constexpr bool kIs4Bit = kDType == DType::kI4 || kDType == DType::kU4;
template <DType kDType>
constexpr bool kIsF8 = kDType >= DType::kF8E4M3FN && kDType <= DType::kF8E5M2FNUZ;
template <DType kDType>
constexpr bool kIsFloat = kDType <= DType::kF8E5M2FNUZ;

template <DType kDType>
auto lane_example() {
  if constexpr (kDType == DType::kF64)
    return double{};
  else if constexpr (kIsFloat<kDType>)
    return float{};
  else if constexpr (kDType == DType::kBool)
    return uint8_t{};
  else
    return int64_t{};
}
template <DType kDType>
using LaneOf = decltype(lane_example<kDType>());

template <DType kDType>
LaneOf<kDType> read(const void* data, int64_t index) {
  if constexpr (kIs4Bit<kDType>) {
    return load_4bit(kDType, data, index);
  } else {
    const Storage<kDType> value = static_cast<const Storage<kDType>*>(data)[index];
    if constexpr (kDType == DType::kF16)
      return f16_to_float(value);
    else if constexpr (kDType == DType::kBF16)
      return bf16_to_float(value);
    else if constexpr (kIsF8<kDType>)
      return f8_to_float(kDType, value);
    else if constexpr (kDType == DType::kBool)
      return value != 0;
    else
      return static_cast<LaneOf<kDType>>(value);
  }
}

template <DType kDType>
void write(void* data, int64_t index, LaneOf<kDType> value, bool saturate) {
  if constexpr (kIs4Bit<kDType>) {
    store_4bit(data, index, static_cast<int8_t>(value));
  } else {
    Storage<kDType>& to = static_cast<Storage<kDType>*>(data)[index];
    if constexpr (kDType == DType::kF16)
      to = float_to_f16(value);
    else if constexpr (kDType == DType::kBF16)
      to = float_to_bf16(value);
    else if constexpr (kIsF8<kDType>)
      to = float_to_f8(kDType, value, saturate);
    else
      to = static_cast<Storage<kDType>>(value);
  }
}

// A float lane's value as `kTo` can hold it.
template <DType kTo>
LaneOf<kTo> round_float(float value, bool saturate) {
  if constexpr (kTo == DType::kF16)
    return f16_to_float(float_to_f16(value));
  else if constexpr (kTo == DType::kBF16)
    return bf16_to_float(float_to_bf16(value));
  else if constexpr (kIsF8<kTo>)
    return f8_to_float(kTo, float_to_f8(kTo, value, saturate));
  else
    return value;
}

template <DType kFrom, DType kTo>
LaneOf<kTo> cast_one(LaneOf<kFrom> value, bool saturate) {
  if constexpr (kTo == DType::kBool) {
    return value != 0;
  } else if constexpr (!kIsFloat<kTo>) {
    if constexpr (kIsFloat<kFrom> && kIs4Bit<kTo>)
      return wrap_integer(kTo, saturate_to_integer(DType::kI64, value));
    else if constexpr (kIsFloat<kFrom>)
      return saturate_to_integer(kTo, value);
    else
      return wrap_integer(kTo, static_cast<int64_t>(value));
  } else {
    constexpr bool kNarrow = kTo != DType::kF32 && kTo != DType::kF64;
    using Wide = std::conditional_t<kFrom == DType::kU64, uint64_t, LaneOf<kFrom>>;
    const Wide wide = static_cast<Wide>(value);
    if constexpr (!kNarrow)
      return static_cast<LaneOf<kTo>>(wide);
    else if constexpr (std::is_same_v<Wide, float>)
      return round_float<kTo>(wide, saturate);
    else
      return round_float<kTo>(round_to_odd(static_cast<double>(wide)), saturate);
  }
}

// One source type a lane is enough: wider types differ only where their lanes do.
template <class Visit>
void visit_lane(DType dtype, Visit&& visit) {
  if (dtype == DType::kU64) return visit(Typed<DType::kU64>{});
  switch (lane_of(dtype)) {
    case Lane::kF32:
      return visit(Typed<DType::kF32>{});
    case Lane::kF64:
      return visit(Typed<DType::kF64>{});
    case Lane::kI64:
      return visit(Typed<DType::kI64>{});
    case Lane::kBool:
      return visit(Typed<DType::kBool>{});
  }
}

}  // namespace

Lane lane_of(DType dtype) {
  if (dtype == DType::kF64) return Lane::kF64;
  if (is_float(dtype)) return Lane::kF32;
  return dtype == DType::kBool ? Lane::kBool : Lane::kI64;
}

size_t lane_bytes(Lane lane) {
  switch (lane) {
    case Lane::kF32:
      return 4;
    case Lane::kBool:
      return 1;
    default:
      return 8;
  }
}

void load_lanes(DType dtype, const void* data, int64_t first, int64_t stride, int64_t count,
                void* lanes) {
  visit_dtype(dtype, [&]<DType kDType>(Typed<kDType>) {
    auto* out = static_cast<LaneOf<kDType>*>(lanes);
    if (stride == 0) {
      if (count > 0) std::fill_n(out, count, read<kDType>(data, first));
    } else if (stride == 1 && !kIs4Bit<kDType>) {
      const void* base = static_cast<const Storage<kDType>*>(data) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = read<kDType>(base, i);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = read<kDType>(data, first + i * stride);
    }
  });
}

void load_lanes_at(DType dtype, const void* data, const int64_t* offsets, int64_t count,
                   void* lanes) {
  visit_dtype(dtype, [&]<DType kDType>(Typed<kDType>) {
    auto* out = static_cast<LaneOf<kDType>*>(lanes);
    for (int64_t i = 0; i < count; ++i) out[i] = read<kDType>(data, offsets[i]);
  });
}

void store_lanes(DType dtype, void* data, int64_t first, int64_t stride, int64_t count,
                 const void* lanes, bool saturate) {
  visit_dtype(dtype, [&]<DType kDType>(Typed<kDType>) {
    const auto* in = static_cast<const LaneOf<kDType>*>(lanes);
    if (stride == 1 && !kIs4Bit<kDType>) {
      void* base = static_cast<Storage<kDType>*>(data) + first;
      for (int64_t i = 0; i < count; ++i) write<kDType>(base, i, in[i], saturate);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        write<kDType>(data, first + i * stride, in[i], saturate);
      }
    }
  });
}

void cast_lanes(DType from, const void* in, DType to, void* out, int64_t count, bool saturate) {
  visit_lane(from, [&]<DType kFrom>(Typed<kFrom>) {
    visit_dtype(to, [&]<DType kTo>(Typed<kTo>) {
      const auto* values = static_cast<const LaneOf<kFrom>*>(in);
      auto* results = static_cast<LaneOf<kTo>*>(out);
      for (int64_t i = 0; i < count; ++i) results[i] = cast_one<kFrom, kTo>(values[i], saturate);
    });
  });
}

}  // namespace kiln::host
