// Einsum as transposes, reductions and matrix products, one operand after the other.
#include <algorithm>
#include <cctype>
#include <set>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

// A label is a letter, or kEllipsis + i for the i-th ellipsis dimension from the right.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

struct Operand {
  ValueId value;
  Labels labels;  // one an axis
};

struct Equation {
  std::vector<std::string> inputs;
  std::optional<std::string> output;
};

Result<Equation> parse(NodeContext& c) {
  std::string text = c.get_string("equation", "");
  text.erase(std::remove_if(text.begin(), text.end(), [](char ch) { return ch == ' '; }),
             text.end());
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) equation.output = text.substr(arrow + 2);
  const std::string left = text.substr(0, arrow);
  for (size_t start = 0;;) {
    const size_t comma = left.find(',', start);
    equation.inputs.push_back(left.substr(start, comma - start));
    if (comma == std::string::npos) break;
    start = comma + 1;
  }
  if (equation.inputs.size() != c.input_count()) {
    return c.fail("equation '" + text + "' has " + std::to_string(equation.inputs.size()) +
                  " terms, the node has " + std::to_string(c.input_count()) + " inputs");
  }
  return equation;
}

// The labels of a term; the ellipsis stands for `ellipsis_rank` dimensions.
Result<Labels> term_labels(NodeContext& c, const std::string& term, int64_t ellipsis_rank) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
      continue;
    }
    if (term.compare(i, 3, "...") != 0 || seen) {
      return c.fail("term '" + term + "' of the equation is malformed");
    }
    seen = true;
    i += 2;
    for (int64_t k = ellipsis_rank - 1; k >= 0; --k) {
      labels.push_back(kEllipsis + static_cast<Label>(k));
    }
  }
  return labels;
}

bool has_ellipsis(const std::string& term) { return term.find("...") != std::string::npos; }

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t axis_of(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// A repeated label takes the diagonal: the axis pair becomes one of stride n + 1.
ValueId take_diagonal(NodeContext& c, ValueId x, int64_t first, int64_t second) {
  std::vector<int64_t> perm{first, second};
  Shape rest;
  for (int64_t axis = 0; axis < c.rank(x); ++axis) {
    if (axis == first || axis == second) continue;
    perm.push_back(axis);
    rest.push_back(c.shape(x)[static_cast<size_t>(axis)]);
  }
  const int64_t n = c.shape(x)[static_cast<size_t>(first)];
  Shape flat = rest;
  flat.insert(flat.begin(), n * n);
  const ValueId pairs = c.reshape(c.transpose(x, perm), flat);
  return c.slice_axis(pairs, 0, 0, n, n > 1 ? n + 1 : 1);
}

Result<Operand> read_operand(NodeContext& c, size_t i, const std::string& term) {
  const ValueId x = c.input(i);
  const auto letters = std::count_if(term.begin(), term.end(),
                                     [](unsigned char ch) { return std::isalpha(ch) != 0; });
  const int64_t ellipsis_rank = has_ellipsis(term) ? c.rank(x) - letters : 0;
  Operand operand{x, {}};
  KILN_ASSIGN_OR_RETURN(operand.labels, term_labels(c, term, std::max<int64_t>(ellipsis_rank, 0)));
  if (static_cast<int64_t>(operand.labels.size()) != c.rank(x)) {
    return c.fail("term '" + term + "' does not fit input " + std::to_string(i) + ", which is " +
                  to_string(c.type(x)));
  }
  for (size_t b = 1; b < operand.labels.size(); ++b) {
    const int64_t a = axis_of(operand.labels, operand.labels[b]);
    if (a == static_cast<int64_t>(b)) continue;
    const Shape& shape = c.shape(operand.value);
    if (shape[static_cast<size_t>(a)] != shape[b]) {
      return c.fail("a label repeats in term '" + term + "' over different extents");
    }
    const Label label = operand.labels[b];
    operand.value = take_diagonal(c, operand.value, a, static_cast<int64_t>(b));
    operand.labels.erase(operand.labels.begin() + static_cast<int64_t>(b));
    operand.labels.erase(operand.labels.begin() + a);
    operand.labels.insert(operand.labels.begin(), label);
    b = 0;
  }
  return operand;
}

// Implicit output: ellipsis dimensions, then the letters that occur once, in alphabetical order.
std::string implicit_output(const Equation& equation) {
  std::map<char, int> counts;
  bool ellipsis = false;
  for (const std::string& term : equation.inputs) {
    ellipsis |= has_ellipsis(term);
    for (char ch : term) {
      if (std::isalpha(static_cast<unsigned char>(ch))) ++counts[ch];
    }
  }
  std::string output = ellipsis ? "..." : "";
  for (const auto& [letter, count] : counts) {
    if (count == 1) output += letter;
  }
  return output;
}

// Sums the labels that nothing else needs.
void sum_out(NodeContext& c, Operand& x, const std::set<Label>& needed) {
  std::vector<int64_t> axes;
  Labels left;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (needed.count(x.labels[i]))
      left.push_back(x.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  x.value = c.reduce(ReduceFn::kSum, x.value, axes, false);
  x.labels = left;
}

ValueId arrange(NodeContext& c, const Operand& x, const Labels& order) {
  std::vector<int64_t> perm;
  for (Label label : order) perm.push_back(axis_of(x.labels, label));
  return c.transpose(x.value, perm);
}

Shape extents(NodeContext& c, const Operand& x, const Labels& labels) {
  Shape shape;
  for (Label label : labels) {
    shape.push_back(c.shape(x.value).at(static_cast<size_t>(axis_of(x.labels, label))));
  }
  return shape;
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Shape joined(std::initializer_list<Shape> parts) {
  Shape all;
  for (const Shape& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Result<Shape> broadcast_extents(NodeContext& c, const Shape& a, const Shape& b) {
  Shape shape = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
      return c.fail("a dimension has the extents " + std::to_string(a[i]) + " and " +
                    std::to_string(b[i]) + ", which do not broadcast");
    }
    if (a[i] == 1) shape[i] = b[i];
  }
  return shape;
}

// One product over shared labels: kept ones are a batch, the others are contracted.
Result<Operand> contract(NodeContext& c, Operand a, Operand b, const std::set<Label>& needed) {
  Labels batch, summed, only_a, only_b;
  for (Label label : a.labels) {
    if (!contains(b.labels, label))
      only_a.push_back(label);
    else
      (needed.count(label) ? batch : summed).push_back(label);
  }
  for (Label label : b.labels) {
    if (!contains(a.labels, label)) only_b.push_back(label);
  }
  if (c.failed()) return *c.error();
  KILN_ASSIGN_OR_RETURN(const Shape batch_shape,
                        broadcast_extents(c, extents(c, a, batch), extents(c, b, batch)));
  KILN_ASSIGN_OR_RETURN(const Shape summed_shape,
                        broadcast_extents(c, extents(c, a, summed), extents(c, b, summed)));
  const Shape rows = extents(c, a, only_a), columns = extents(c, b, only_b);
  const int64_t m = element_count(rows), n = element_count(columns);
  const int64_t k = element_count(summed_shape);
  const ValueId left = c.reshape(c.broadcast(arrange(c, a, joined({batch, only_a, summed})),
                                             joined({batch_shape, rows, summed_shape})),
                                 joined({batch_shape, {m, k}}));
  const ValueId right = c.reshape(c.broadcast(arrange(c, b, joined({batch, summed, only_b})),
                                              joined({batch_shape, summed_shape, columns})),
                                  joined({batch_shape, {k, n}}));
  const ValueId product = summed.empty() ? c.mul(left, right) : c.matmul(left, right);
  return Operand{c.reshape(product, joined({batch_shape, rows, columns})),
                 joined({batch, only_a, only_b})};
}

Outputs einsum(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Equation equation, parse(c));
  std::vector<Operand> operands;
  int64_t ellipsis_rank = 0;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Operand operand, read_operand(c, i, equation.inputs[i]));
    for (Label label : operand.labels) {
      if (label >= kEllipsis)
        ellipsis_rank = std::max<int64_t>(ellipsis_rank, label - kEllipsis + 1);
    }
    operands.push_back(std::move(operand));
  }
  const std::string output = equation.output ? *equation.output : implicit_output(equation);
  KILN_ASSIGN_OR_RETURN(const Labels wanted, term_labels(c, output, ellipsis_rank));
  Operand result = operands[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    std::set<Label> needed(wanted.begin(), wanted.end());
    for (size_t later = i + 1; later < operands.size(); ++later) {
      needed.insert(operands[later].labels.begin(), operands[later].labels.end());
    }
    if (i > 0) {
      std::set<Label> of_operand = needed;
      of_operand.insert(result.labels.begin(), result.labels.end());
      sum_out(c, operands[i], of_operand);
      KILN_ASSIGN_OR_RETURN(result, contract(c, result, operands[i], needed));
    }
    sum_out(c, result, needed);
  }
  for (Label label : wanted) {
    if (!contains(result.labels, label) || wanted.size() != result.labels.size()) {
      return c.fail("the output '" + output + "' has a label that no input has, or one twice");
    }
  }
  return one(arrange(c, result, wanted));
}

constexpr Handler kHandlers[] = {
    {"", "Einsum", einsum},
};

}  // namespace

std::span<const Handler> einsum_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
