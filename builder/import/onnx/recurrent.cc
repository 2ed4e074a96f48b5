// RNN, GRU, LSTM: every optional input and attribute gets its value; layout 1 becomes transposes.
#include <algorithm>
#include <limits>
#include <map>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

struct CellKind {
  const char* name;
  int64_t gates;
  std::vector<std::string> activations;
};

struct Parameters {
  std::vector<std::string> names;
  std::vector<double> alpha, beta;
};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

struct Defaults {
  bool alpha, beta;  // whether the function has the parameter
  double alpha_value, beta_value;
};

// ONNX lists alphas and betas only for the functions that have them, in order.
Parameters read_activations(NodeContext& c, const CellKind& kind, int64_t directions) {
  static const std::map<std::string, Defaults> kParametric = {
      {"affine", {true, true, 1, 0}},           {"leakyrelu", {true, false, 0.01, 0}},
      {"thresholdedrelu", {true, false, 1, 0}}, {"scaledtanh", {true, true, 1, 1}},
      {"hardsigmoid", {true, true, 0.2, 0.5}},  {"elu", {true, false, 1, 0}},
  };
  Parameters p;
  p.names = c.get_strings("activations");
  if (p.names.empty()) {
    for (int64_t d = 0; d < directions; ++d) {
      p.names.insert(p.names.end(), kind.activations.begin(), kind.activations.end());
    }
  }
  const auto alphas = c.get_floats("activation_alpha"), betas = c.get_floats("activation_beta");
  size_t alpha = 0, beta = 0;
  for (const std::string& name : p.names) {
    const auto found = kParametric.find(lower(name));
    const Defaults d = found == kParametric.end() ? Defaults{} : found->second;
    p.alpha.push_back(d.alpha && alpha < alphas.size() ? alphas[alpha++] : d.alpha_value);
    p.beta.push_back(d.beta && beta < betas.size() ? betas[beta++] : d.beta_value);
  }
  return p;
}

struct Sizes {
  int64_t steps, batch, hidden, directions;
};

ValueId zeros(NodeContext& c, DType dtype, Shape shape) {
  return c.filled(0, {dtype, std::move(shape)});
}

// x, w, r, b, lengths, h0 [, c0, p]: all there.
std::vector<ValueId> operands(NodeContext& c, ValueId x, const CellKind& kind, const Sizes& s,
                              bool batch_first) {
  const DType dtype = c.dtype(x);
  const Shape state{s.directions, s.batch, s.hidden};
  const auto initial = [&](size_t i) {
    if (!c.has(i)) return zeros(c, dtype, state);
    return batch_first ? c.transpose(c.input(i), {1, 0, 2}) : c.input(i);
  };
  std::vector<ValueId> values{x, c.input(1), c.input(2)};
  values.push_back(c.has(3) ? c.input(3)
                            : zeros(c, dtype, {s.directions, 2 * kind.gates * s.hidden}));
  values.push_back(c.has(4) ? c.input(4)
                            : c.filled(static_cast<double>(s.steps), {DType::kI32, {s.batch}}));
  values.push_back(initial(5));
  if (kind.gates == 4) {
    values.push_back(initial(6));
    values.push_back(c.has(7) ? c.input(7) : zeros(c, dtype, {s.directions, 3 * s.hidden}));
  }
  return values;
}

Outputs recurrent(NodeContext& c, const CellKind& kind) {
  const bool batch_first = c.get_int("layout", 0) != 0;
  ValueId x = c.input(0);
  const TensorType r = c.input_type(2);
  if (c.rank(x) != 3 || r.rank() != 3) {
    return c.fail("inputs X and R are " + to_string(c.type(x)) + " and " + to_string(r) +
                  ", expected rank 3");
  }
  if (batch_first) x = c.transpose(x, {1, 0, 2});
  const std::string direction = c.get_string("direction", "forward");
  const Sizes s{c.shape(x)[0], c.shape(x)[1], r.shape[2], direction == "bidirectional" ? 2 : 1};
  const int64_t hidden = c.get_int("hidden_size", s.hidden);
  if (hidden != s.hidden) {
    return c.fail("hidden_size is " + std::to_string(hidden) + ", R is " + to_string(r));
  }
  const Parameters activations = read_activations(c, kind, s.directions);
  Operation op{kind.name, {}};
  op.set("direction", direction)
      .set("activations", activations.names)
      .set("activation_alpha", activations.alpha)
      .set("activation_beta", activations.beta)
      .set("clip", c.get_float("clip", std::numeric_limits<double>::infinity()));
  if (kind.gates == 3) op.set("linear_before_reset", c.get_int("linear_before_reset", 0));
  if (kind.gates == 4) op.set("input_forget", c.get_int("input_forget", 0));
  auto outputs = c.opaque(std::move(op), operands(c, x, kind, s, batch_first));
  if (!batch_first || outputs.empty()) return outputs;
  // [T, D, B, H] becomes [B, T, D, H]; [D, B, H] becomes [B, D, H].
  outputs[0] = c.transpose(outputs[0], {2, 0, 1, 3});
  for (size_t i = 1; i < outputs.size(); ++i) outputs[i] = c.transpose(outputs[i], {1, 0, 2});
  return outputs;
}

Outputs rnn(NodeContext& c) { return recurrent(c, {"rnn", 1, {"Tanh"}}); }
Outputs gru(NodeContext& c) { return recurrent(c, {"gru", 3, {"Sigmoid", "Tanh"}}); }
Outputs lstm(NodeContext& c) { return recurrent(c, {"lstm", 4, {"Sigmoid", "Tanh", "Tanh"}}); }

constexpr Handler kHandlers[] = {
    {"", "GRU", gru},
    {"", "LSTM", lstm},
    {"", "RNN", rnn},
};

}  // namespace

std::span<const Handler> recurrent_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
