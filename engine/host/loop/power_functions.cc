// Powers: the exponent has a dtype of its own, the result has the base's.
#include <cmath>
#include <type_traits>

#include "engine/host/loop/lane_loops.h"

namespace kiln::host {
namespace {

int64_t integer_power(int64_t base, int64_t exponent, DType dtype) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1, factor = bits(base);
  for (uint64_t left = bits(exponent); left != 0; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return wrap(result, dtype);
}

float power_f32(float base, float exponent, DType) {
  if (exponent == 2) return base * base;
  return std::pow(base, exponent);
}

template <class Base, class Exponent>
void power(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const Base* a = lanes<Base>(args[0]);
  const Exponent* b = lanes<Exponent>(args[1]);
  auto* y = static_cast<Base*>(out);
  for (int64_t i = 0; i < count; ++i) {
    const Base base = a[args[0].uniform ? 0 : i];
    const Exponent exponent = b[args[1].uniform ? 0 : i];
    if constexpr (std::is_integral_v<Base> && std::is_integral_v<Exponent>) {
      y[i] = integer_power(base, exponent, dtypes[0]);
    } else if constexpr (std::is_integral_v<Base>) {
      const double wide =
          is_u64(dtypes[0]) ? static_cast<double>(bits(base)) : static_cast<double>(base);
      y[i] = saturate_to_integer(dtypes[0], std::pow(wide, static_cast<double>(exponent)));
    } else {
      y[i] = static_cast<Base>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
  }
}

void power_of_floats(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const float exponent = *lanes<float>(args[1]);
  if (args[1].uniform && exponent == 2) {
    return unary<float, float, [](float x, DType) { return x * x; }>(args, dtypes, out,
                                                                     args[0].uniform ? 1 : count);
  }
  if (args[1].uniform && exponent == 3) {
    return unary<float, float, [](float x, DType) { return x * x * x; }>(
        args, dtypes, out, args[0].uniform ? 1 : count);
  }
  binary<float, float, float, power_f32>(args, dtypes, out, count);
}

template <class Base>
LaneFunction power_of(Lane exponent) {
  switch (exponent) {
    case Lane::kF32:
      return power<Base, float>;
    case Lane::kF64:
      return power<Base, double>;
    default:
      return power<Base, int64_t>;
  }
}

}  // namespace

LaneFunction power_function(Lane base, Lane exponent) {
  switch (base) {
    case Lane::kF32:
      return exponent == Lane::kF32 ? power_of_floats : power_of<float>(exponent);
    case Lane::kF64:
      return power_of<double>(exponent);
    default:
      return power_of<int64_t>(exponent);
  }
}

}  // namespace kiln::host
