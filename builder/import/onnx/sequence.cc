// Sequences and optionals. They exist only while importing: a sequence is a list of values whose
// length and positions must be known.
#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {
namespace {

using Kind = Binding::Kind;

Bindings one_binding(Binding binding) { return std::vector<Binding>{std::move(binding)}; }

Result<std::vector<Binding>> elements(NodeContext& c, std::span<const Binding> inputs, size_t i) {
  if (i < inputs.size() && inputs[i].kind == Kind::kSequence) return *inputs[i].elements;
  return c.fail("input " + std::to_string(i) + " is not a sequence");
}

// A position in a sequence of `size`; negative ones count from the end.
Result<size_t> position(NodeContext& c, size_t input, size_t size, bool may_be_end) {
  KILN_ASSIGN_OR_RETURN(const int64_t given, c.known_int(input, "position"));
  const auto length = static_cast<int64_t>(size);
  const int64_t wrapped = given < 0 ? given + length : given;
  if (wrapped >= 0 && wrapped < length + (may_be_end ? 1 : 0)) return static_cast<size_t>(wrapped);
  return c.fail("position " + std::to_string(given) + " is outside of a sequence of " +
                std::to_string(size));
}

Bindings construct(NodeContext&, std::span<const Binding> inputs) {
  return one_binding(Binding::sequence({inputs.begin(), inputs.end()}));
}

Bindings empty(NodeContext&, std::span<const Binding>) {
  return one_binding(Binding::sequence({}));
}

Bindings insert(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(auto list, elements(c, inputs, 0));
  size_t at = list.size();
  if (c.has(2)) {
    KILN_ASSIGN_OR_RETURN(at, position(c, 2, list.size(), true));
  }
  list.insert(list.begin() + static_cast<int64_t>(at), inputs[1]);
  return one_binding(Binding::sequence(std::move(list)));
}

Bindings erase(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(auto list, elements(c, inputs, 0));
  size_t at = list.size() - 1;
  if (c.has(1) || list.empty()) {
    KILN_ASSIGN_OR_RETURN(at, position(c, 1, list.size(), false));
  }
  list.erase(list.begin() + static_cast<int64_t>(at));
  return one_binding(Binding::sequence(std::move(list)));
}

Bindings element_at(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(const auto list, elements(c, inputs, 0));
  KILN_ASSIGN_OR_RETURN(const size_t at, position(c, 1, list.size(), false));
  return one_binding(list[at]);
}

Bindings length(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(const auto list, elements(c, inputs, 0));
  return one_binding(Binding::tensor(c.scalar_int(static_cast<int64_t>(list.size()), DType::kI64)));
}

// Sizes of the pieces: given one by one, equal with a smaller last one, or 1 each.
Result<std::vector<int64_t>> piece_sizes(NodeContext& c, int64_t extent) {
  std::vector<int64_t> sizes;
  if (c.has(1)) {
    KILN_ASSIGN_OR_RETURN(sizes, c.known_ints(1, "split"));
    if (c.input_type(1).rank() == 1) return sizes;
  } else {
    sizes.assign(1, 1);
  }
  const int64_t size = sizes.size() == 1 ? sizes[0] : 0;
  if (size < 1) return c.fail("split is " + std::to_string(size) + ", expected 1 or more");
  sizes.clear();
  for (int64_t start = 0; start < extent; start += size) {
    sizes.push_back(std::min(size, extent - start));
  }
  return sizes;
}

Bindings split_to_sequence(NodeContext& c, std::span<const Binding>) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.rank(x)));
  const int64_t extent = c.shape(x).at(static_cast<size_t>(axis));
  KILN_ASSIGN_OR_RETURN(const auto sizes, piece_sizes(c, extent));
  const bool keep = c.has(1) || c.get_int("keepdims", 1) != 0;
  std::vector<Binding> pieces;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - start)
      return c.fail("split goes beyond " + to_string(c.type(x)));
    const ValueId piece = c.slice_axis(x, axis, start, size);
    pieces.push_back(Binding::tensor(keep ? piece : c.squeeze(piece, {axis})));
    start += size;
  }
  if (start != extent) {
    return c.fail("split adds up to " + std::to_string(start) + ", axis " + std::to_string(axis) +
                  " has " + std::to_string(extent));
  }
  return one_binding(Binding::sequence(std::move(pieces)));
}

Bindings concat_from_sequence(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(const auto list, elements(c, inputs, 0));
  if (list.empty()) return c.unsupported("the sequence is empty");
  const bool new_axis = c.get_int("new_axis", 0) != 0;
  std::vector<ValueId> parts;
  for (const Binding& element : list) {
    if (element.kind != Kind::kTensor) return c.fail("an element is not a tensor");
    parts.push_back(element.value);
  }
  KILN_ASSIGN_OR_RETURN(const int64_t axis,
                        c.axis("axis", 0, c.rank(parts[0]) + (new_axis ? 1 : 0)));
  if (new_axis) {
    for (ValueId& part : parts) part = c.unsqueeze(part, {axis});
  }
  return one_binding(Binding::tensor(c.concat(parts, axis)));
}

// Calls the body for each position; further sequences go in step, tensors enter as they are.
Bindings map(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(const auto first, elements(c, inputs, 0));
  const onnx::Graph* body = c.get_graph("body");
  if (!body) return c.fail("body is missing");
  std::vector<std::vector<Binding>> results(c.output_count());
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Binding> arguments;
    for (const Binding& input : inputs) {
      if (input.kind == Kind::kSequence && i >= input.elements->size()) {
        return c.fail("sequences of different lengths");
      }
      arguments.push_back(input.kind == Kind::kSequence ? (*input.elements)[i] : input);
    }
    KILN_ASSIGN_OR_RETURN(const auto outputs,
                          c.importer().inline_body(*body, c.scope(), arguments));
    for (size_t k = 0; k < results.size() && k < outputs.size(); ++k) {
      results[k].push_back(outputs[k]);
    }
  }
  std::vector<Binding> sequences;
  for (auto& result : results) sequences.push_back(Binding::sequence(std::move(result)));
  return sequences;
}

Bindings optional(NodeContext&, std::span<const Binding> inputs) {
  return one_binding(inputs.empty() ? Binding::none() : inputs[0]);
}

Bindings optional_has_element(NodeContext& c, std::span<const Binding> inputs) {
  const bool has = !inputs.empty() && inputs[0].kind != Kind::kNone;
  return one_binding(Binding::tensor(c.scalar_int(has, DType::kBool)));
}

Bindings optional_get_element(NodeContext& c, std::span<const Binding> inputs) {
  if (inputs.empty() || inputs[0].kind == Kind::kNone) return c.fail("the optional has no value");
  return one_binding(inputs[0]);
}

Bindings identity(NodeContext& c, std::span<const Binding> inputs) {
  if (inputs.empty()) return c.fail("input 0 is missing");
  return one_binding(inputs[0]);
}

constexpr BindingHandler kHandlers[] = {
    {"ConcatFromSequence", concat_from_sequence},
    {"Identity", identity},
    {"Optional", optional},
    {"OptionalGetElement", optional_get_element},
    {"OptionalHasElement", optional_has_element},
    {"SequenceAt", element_at},
    {"SequenceConstruct", construct},
    {"SequenceEmpty", empty},
    {"SequenceErase", erase},
    {"SequenceInsert", insert},
    {"SequenceLength", length},
    {"SequenceMap", map},
    {"SplitToSequence", split_to_sequence},
};

}  // namespace

std::span<const BindingHandler> sequence_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
