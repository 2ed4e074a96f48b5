// dft and det: small numerical kernels, in double precision.
#include <cmath>
#include <complex>
#include <numbers>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/lines.h"

namespace kiln::host {
namespace {

using Complex = std::complex<double>;

struct DftPlan {
  Lines lines;  // of the signal, the complex pair left out
  int64_t length, out_extent;
  int64_t parts;  // 1: real input, 2: complex
  bool inverse, half_input, real_output;
};

template <class T>
std::vector<Complex> read_line(const DftPlan& p, const T* x, int64_t line) {
  std::vector<Complex> signal(p.length);
  const int64_t start = p.lines.start(line, p.lines.extent);
  for (int64_t i = 0; i < std::min(p.length, p.lines.extent); ++i) {
    const T* at = x + (start + i * p.lines.inner) * p.parts;
    signal[i] = {static_cast<double>(at[0]), p.parts == 2 ? static_cast<double>(at[1]) : 0.0};
  }
  // The other half of a real signal's spectrum mirrors the first.
  for (int64_t i = p.lines.extent; p.half_input && i < p.length; ++i) {
    if (p.length - i < p.lines.extent) signal[i] = std::conj(signal[p.length - i]);
  }
  return signal;
}

template <class T>
void transform(const DftPlan& p, const T* x, T* y) {
  std::vector<Complex> roots(p.length);
  const double turn = (p.inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(p.length);
  for (int64_t i = 0; i < p.length; ++i) roots[i] = std::polar(1.0, turn * static_cast<double>(i));
  const double scale = p.inverse ? 1 / static_cast<double>(p.length) : 1;
  const int64_t out_parts = p.real_output ? 1 : 2;
  parallel_for(p.lines.count(), p.length * p.out_extent * 8, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const auto signal = read_line(p, x, line);
      const int64_t start = p.lines.start(line, p.out_extent);
      for (int64_t k = 0; k < p.out_extent; ++k) {
        Complex sum = 0;
        for (int64_t i = 0, at = 0; i < p.length; ++i, at = (at + k) % p.length) {
          sum += signal[i] * roots[at];
        }
        T* to = y + (start + k * p.lines.inner) * out_parts;
        to[0] = static_cast<T>(sum.real() * scale);
        if (!p.real_output) to[1] = static_cast<T>(sum.imag() * scale);
      }
    }
  });
}

// By elimination with row pivots.
double determinant(std::vector<double> m, int64_t n) {
  double det = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::abs(m[r * n + c]) > std::abs(m[pivot * n + c])) pivot = r;
    }
    if (m[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      det = -det;
      for (int64_t k = 0; k < n; ++k) std::swap(m[pivot * n + k], m[c * n + k]);
    }
    det *= m[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = m[r * n + c] / m[c * n + c];
      for (int64_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return det;
}

}  // namespace

// x [..., 1 or 2]; axis is not the last. onesided keeps length / 2 + 1 results of a real signal;
// with inverse, it takes so many and yields a real signal [..., 1].
Result<Types> infer_dft(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 2));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, int_attribute(o, "axis", 0, in[0].rank() - 2));
  KILN_ASSIGN_OR_RETURN(const int64_t length, int_attribute(o, "length", 1, 1 << 16));
  KILN_ASSIGN_OR_RETURN(const bool inverse, flag_attribute(o, "inverse"));
  KILN_ASSIGN_OR_RETURN(const bool onesided, flag_attribute(o, "onesided"));
  const int64_t parts = in[0].shape.back();
  if (parts != 1 && parts != 2) {
    return reject(o, "input is " + to_string(in[0]) + ", its last extent must be 1 or 2");
  }
  if (onesided && !inverse && parts != 1) return reject(o, "onesided needs a real signal");
  if (onesided && inverse && parts != 2) return reject(o, "onesided inverse needs complex input");
  TensorType out = in[0];
  out.shape[axis] = onesided && !inverse ? length / 2 + 1 : length;
  out.shape.back() = onesided && inverse ? 1 : 2;
  return results(o, {out});
}

Result<KernelPtr> prepare_dft(const Prepare& p) {
  const Operation& o = p.operation;
  const Shape &in = p.inputs[0].type.shape, &out = p.outputs[0].shape;
  const int64_t axis = o.get_int("axis", 0);
  const bool inverse = o.get_int("inverse", 0) == 1;
  const bool half = inverse && o.get_int("onesided", 0) == 1;
  const DftPlan plan{lines_along({in.begin(), in.end() - 1}, axis),
                     o.get_int("length", 1),
                     out[axis],
                     in.back(),
                     inverse,
                     half,
                     half};
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan](Inputs ins, Outputs outs) {
      transform<T>(plan, input<T>(ins, 0), output<T>(outs, 0));
    });
  });
}

Result<Types> infer_det(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 2));
  const Shape& x = in[0].shape;
  if (x.back() != x[x.size() - 2]) {
    return reject(o, "input is " + to_string(in[0]) + ", expected square matrices");
  }
  return results(o, {{in[0].dtype, {x.begin(), x.end() - 2}}});
}

Result<KernelPtr> prepare_det(const Prepare& p) {
  const int64_t n = p.inputs[0].type.shape.back(), count = p.outputs[0].elements();
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([=](Inputs in, Outputs out) {
      for (int64_t i = 0; i < count; ++i) {
        const T* from = input<T>(in, 0) + i * n * n;
        output<T>(out, 0)[i] =
            static_cast<T>(determinant(std::vector<double>(from, from + n * n), n));
      }
    });
  });
}

}  // namespace kiln::host
