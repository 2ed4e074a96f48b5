// rnn, gru, lstm over x [T, B, I]: all inputs are there (the importer writes zeros for absent
// ones):
//   x, w [D, G*H, I], r [D, G*H, H], b [D, 2*G*H], lengths i32 [B], h0 [D, B, H]; lstm also
//   c0 [D, B, H] and peepholes p [D, 3*H] (i, o, f). Gates are in ONNX's order: z r h and i o f c.
// Outputs: y [T, D, B, H], zero past a sequence's end; the last h, and c for lstm, [D, B, H].
#include <algorithm>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/activation.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {

std::optional<Activation::Kind> parse_activation(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "relu",       "tanh",        "sigmoid", "affine",   "leakyrelu", "thresholdedrelu",
      "scaledtanh", "hardsigmoid", "elu",     "softsign", "softplus"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const bool same =
        std::equal(name.begin(), name.end(), kNames[i].begin(), kNames[i].end(),
                   [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
    if (same) return static_cast<Activation::Kind>(i);
  }
  return std::nullopt;
}

namespace {

enum class Cell : uint8_t { kRnn, kGru, kLstm };

constexpr int64_t gates_of(Cell cell) {
  return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4;
}
constexpr int64_t activations_of(Cell cell) {
  return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 2 : 3;
}

struct Plan {
  Cell cell;
  int64_t steps, batch, width, hidden, directions;
  bool reverse;                         // of the only direction
  std::vector<Activation> activations;  // of direction 0, then 1
  double clip;                          // infinite: none
  bool input_forget, linear_before_reset;
};

// One direction's run. All matrices are row-major.
template <class T>
class Run {
 public:
  Run(const Plan& plan, Inputs in, Outputs out, int64_t direction)
      : p_(plan), d_(direction), out_(out), lengths_(input<int32_t>(in, 4)) {
    const int64_t rows = gates_of(p_.cell) * p_.hidden, state = p_.batch * p_.hidden;
    r_ = input<T>(in, 2) + d_ * rows * p_.hidden;
    bias_ = input<T>(in, 3) + d_ * 2 * rows;
    h_.assign(input<T>(in, 5) + d_ * state, input<T>(in, 5) + (d_ + 1) * state);
    if (p_.cell == Cell::kLstm) {
      c_.assign(input<T>(in, 6) + d_ * state, input<T>(in, 6) + (d_ + 1) * state);
      peepholes_ = input<T>(in, 7) + d_ * 3 * p_.hidden;
    }
    from_x_.assign(p_.steps * p_.batch * rows, T{0});
    gemm<T>(p_.steps * p_.batch, rows, p_.width, {input<T>(in, 0), p_.width, 1},
            {input<T>(in, 1) + d_ * rows * p_.width, 1, p_.width}, {from_x_.data(), rows, 1});
    from_h_.resize(p_.batch * rows);
    reset_h_.resize(state);
  }

  void go() {
    for (int64_t step = 0; step < p_.steps; ++step) {
      recur(0, gates_of(p_.cell), h_.data());
      if (p_.cell == Cell::kGru)
        update_gru(step);
      else
        update_each(step);
    }
    std::copy(h_.begin(), h_.end(), output<T>(out_, 1) + d_ * p_.batch * p_.hidden);
    if (p_.cell == Cell::kLstm) {
      std::copy(c_.begin(), c_.end(), output<T>(out_, 2) + d_ * p_.batch * p_.hidden);
    }
  }

 private:
  // from_h = h r^T for gates [first, last).
  void recur(int64_t first, int64_t last, const T* h) {
    const int64_t rows = gates_of(p_.cell) * p_.hidden, columns = (last - first) * p_.hidden;
    T* to = from_h_.data() + first * p_.hidden;
    for (int64_t b = 0; b < p_.batch; ++b) std::fill_n(to + b * rows, columns, T{0});
    gemm<T>(p_.batch, columns, p_.hidden, {h, p_.hidden, 1},
            {r_ + first * p_.hidden * p_.hidden, 1, p_.hidden}, {to, rows, 1});
  }

  // Where this direction is after `step` steps of row b; negative past its end.
  int64_t time_of(int64_t step, int64_t b) const {
    const int64_t length = lengths_[b];
    if (step >= length) return -1;
    return p_.reverse || d_ == 1 ? length - 1 - step : step;
  }

  T x_part(int64_t t, int64_t b, int64_t gate, int64_t j) const {
    const int64_t rows = gates_of(p_.cell) * p_.hidden;
    return from_x_[(t * p_.batch + b) * rows + gate * p_.hidden + j] + bias_[gate * p_.hidden + j];
  }
  T h_part(int64_t b, int64_t gate, int64_t j) const {
    const int64_t rows = gates_of(p_.cell) * p_.hidden;
    return from_h_[b * rows + gate * p_.hidden + j] + bias_[rows + gate * p_.hidden + j];
  }

  T act(int64_t which, T x) const {
    const T limit = static_cast<T>(p_.clip);
    const T clipped = x > limit ? limit : x < -limit ? -limit : x;
    return activate(p_.activations[d_ * activations_of(p_.cell) + which], clipped);
  }

  void store(int64_t t, int64_t b, int64_t j, T value) {
    h_[b * p_.hidden + j] = value;
    output<T>(out_, 0)[((t * p_.directions + d_) * p_.batch + b) * p_.hidden + j] = value;
  }

  void update_each(int64_t step) {
    for (int64_t b = 0; b < p_.batch; ++b) {
      const int64_t t = time_of(step, b);
      for (int64_t j = 0; t >= 0 && j < p_.hidden; ++j) {
        const T value = p_.cell == Cell::kLstm ? lstm_cell(t, b, j)
                                               : act(0, x_part(t, b, 0, j) + h_part(b, 0, j));
        store(t, b, j, value);
      }
    }
  }

  T lstm_cell(int64_t t, int64_t b, int64_t j) {
    T& c = c_[b * p_.hidden + j];
    const auto gate = [&](int64_t g) { return x_part(t, b, g, j) + h_part(b, g, j); };
    const T in = act(0, gate(0) + peepholes_[j] * c);
    const T forget =
        p_.input_forget ? T{1} - in : act(0, gate(2) + peepholes_[2 * p_.hidden + j] * c);
    c = forget * c + in * act(1, gate(3));
    const T out = act(0, gate(1) + peepholes_[p_.hidden + j] * c);
    // h(c) is not clipped: it is not a gate's input.
    return out * activate(p_.activations[d_ * 3 + 2], c);
  }

  void update_gru(int64_t step) {
    const auto reset = [&](int64_t t, int64_t b, int64_t j) {
      return act(0, x_part(t, b, 1, j) + h_part(b, 1, j));
    };
    if (!p_.linear_before_reset) {
      for (int64_t b = 0; b < p_.batch; ++b) {
        const int64_t t = time_of(step, b);
        for (int64_t j = 0; t >= 0 && j < p_.hidden; ++j) {
          reset_h_[b * p_.hidden + j] = reset(t, b, j) * h_[b * p_.hidden + j];
        }
      }
      recur(2, 3, reset_h_.data());
    }
    for (int64_t b = 0; b < p_.batch; ++b) {
      const int64_t t = time_of(step, b);
      for (int64_t j = 0; t >= 0 && j < p_.hidden; ++j) {
        const T z = act(0, x_part(t, b, 0, j) + h_part(b, 0, j));
        const T scale = p_.linear_before_reset ? reset(t, b, j) : T{1};
        const T candidate = act(1, x_part(t, b, 2, j) + scale * h_part(b, 2, j));
        store(t, b, j, (T{1} - z) * candidate + z * h_[b * p_.hidden + j]);
      }
    }
  }

  const Plan& p_;
  int64_t d_;
  Outputs out_;
  const int32_t* lengths_;
  const T *r_, *bias_, *peepholes_ = nullptr;
  std::vector<T> h_, c_, from_x_, from_h_, reset_h_;
};

Result<std::vector<Activation>> read_activations(const Operation& o, int64_t count) {
  KILN_ASSIGN_OR_RETURN(const auto names, strings_attribute(o, "activations", count));
  KILN_ASSIGN_OR_RETURN(const auto alpha, doubles_attribute(o, "activation_alpha", count));
  KILN_ASSIGN_OR_RETURN(const auto beta, doubles_attribute(o, "activation_beta", count));
  std::vector<Activation> list;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto kind = parse_activation(names[i]);
    if (!kind) return reject(o, "there is no activation '" + names[i] + "'");
    list.push_back({*kind, alpha[i], beta[i]});
  }
  return list;
}

Result<Plan> make_plan(const Operation& o, InputTypes in, Cell cell) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, cell == Cell::kLstm ? 8 : 6));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 3, 3));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 2, 3, 3));
  KILN_ASSIGN_OR_RETURN(const size_t direction,
                        choice_attribute(o, "direction", {"forward", "reverse", "bidirectional"}));
  Plan plan{};
  plan.cell = cell;
  plan.steps = in[0].shape[0];
  plan.batch = in[0].shape[1];
  plan.width = in[0].shape[2];
  plan.hidden = in[2].shape[2];
  plan.directions = direction == 2 ? 2 : 1;
  plan.reverse = direction == 1;
  KILN_ASSIGN_OR_RETURN(plan.activations,
                        read_activations(o, plan.directions * activations_of(cell)));
  KILN_ASSIGN_OR_RETURN(plan.clip, double_attribute(o, "clip"));
  if (cell == Cell::kLstm) {
    KILN_ASSIGN_OR_RETURN(plan.input_forget, flag_attribute(o, "input_forget"));
  } else if (cell == Cell::kGru) {
    KILN_ASSIGN_OR_RETURN(plan.linear_before_reset, flag_attribute(o, "linear_before_reset"));
  }
  return plan;
}

Result<Types> infer_cell(const Operation& o, InputTypes in, Cell cell) {
  KILN_ASSIGN_OR_RETURN(const Plan p, make_plan(o, in, cell));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  if (p.hidden > kMaxAmount) return reject(o, "the hidden size is too large");
  const int64_t d = p.directions, rows = gates_of(cell) * p.hidden;
  const std::vector<Shape> shapes{
      {},        {d, rows, p.width},     {d, rows, p.hidden},    {d, 2 * rows},
      {p.batch}, {d, p.batch, p.hidden}, {d, p.batch, p.hidden}, {d, 3 * p.hidden}};
  for (size_t i = 1; i < in.size(); ++i) {
    KILN_RETURN_IF_ERROR(expect_shape(o, in, i, shapes[i]));
    KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, i == 4 ? DType::kI32 : in[0].dtype));
  }
  const TensorType state{in[0].dtype, {d, p.batch, p.hidden}};
  Types out{{in[0].dtype, {p.steps, d, p.batch, p.hidden}}, state};
  if (cell == Cell::kLstm) out.push_back(state);
  return results(o, std::move(out));
}

Result<> check_lengths(const Operation& o, const Plan& plan, const int32_t* lengths) {
  for (int64_t b = 0; b < plan.batch; ++b) {
    if (lengths[b] >= 0 && lengths[b] <= plan.steps) continue;
    return reject(o, "sequence length " + std::to_string(lengths[b]) + " is outside of [0, " +
                         std::to_string(plan.steps) + "]");
  }
  return Ok();
}

Result<KernelPtr> prepare_cell(const Prepare& p, Cell cell) {
  Types types;
  for (const HostInput& in : p.inputs) types.push_back(in.type);
  KILN_ASSIGN_OR_RETURN(Plan plan, make_plan(p.operation, types, cell));
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = std::move(plan), operation = Operation{p.operation.name, {}},
                        count = p.outputs[0].elements()](Inputs in, Outputs out) -> Result<> {
      KILN_RETURN_IF_ERROR(check_lengths(operation, plan, input<int32_t>(in, 4)));
      if (count > 0) std::fill_n(output<T>(out, 0), count, T{0});
      for (int64_t d = 0; d < plan.directions; ++d) Run<T>(plan, in, out, d).go();
      return Ok();
    });
  });
}

}  // namespace

Result<Types> infer_rnn(const Operation& o, InputTypes in) { return infer_cell(o, in, Cell::kRnn); }
Result<KernelPtr> prepare_rnn(const Prepare& p) { return prepare_cell(p, Cell::kRnn); }
Result<Types> infer_gru(const Operation& o, InputTypes in) { return infer_cell(o, in, Cell::kGru); }
Result<KernelPtr> prepare_gru(const Prepare& p) { return prepare_cell(p, Cell::kGru); }
Result<Types> infer_lstm(const Operation& o, InputTypes in) {
  return infer_cell(o, in, Cell::kLstm);
}
Result<KernelPtr> prepare_lstm(const Prepare& p) { return prepare_cell(p, Cell::kLstm); }

}  // namespace kiln::host
