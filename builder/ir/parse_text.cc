#include <algorithm>
#include <charconv>
#include <map>

#include "builder/ir/text.h"

namespace kiln::ir {
namespace {

// Recursive descent over the text form. Errors name the line.
class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Result<Graph> parse() {
    KILN_RETURN_IF_ERROR(expect("graph"));
    return graph();
  }

 private:
  using Names = std::map<uint32_t, ValueId>;

  Error fail(const std::string& message) const {
    const auto line =
        1 + std::count(whole_.begin(), whole_.end() - static_cast<int>(rest_.size()), '\n');
    return {ErrorCode::kInvalidArgument,
            "graph text, line " + std::to_string(line) + ": " + message};
  }

  void skip_space() {
    const size_t at = rest_.find_first_not_of(" \n\t");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  Result<> expect(std::string_view token) {
    if (accept(token)) return Ok();
    return fail("found '" + std::string(rest_.substr(0, 12)) + "', expected '" +
                std::string(token) + "'");
  }

  Result<uint32_t> value_number() {
    KILN_RETURN_IF_ERROR(expect("%"));
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return fail("expected a number after '%'");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }

  Result<ValueId> value(const Names& names) {
    KILN_ASSIGN_OR_RETURN(const uint32_t number, value_number());
    const auto found = names.find(number);
    if (found == names.end()) return fail("%" + std::to_string(number) + " is not defined yet");
    return found->second;
  }

  Result<std::string> string() {
    KILN_RETURN_IF_ERROR(expect("\""));
    std::string out;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return out;
      }
      if (rest_[i] != '\\') {
        out += rest_[i];
      } else if (i + 1 < rest_.size() && rest_[i + 1] != 'x') {
        out += rest_[++i];
      } else if (i + 3 < rest_.size()) {
        unsigned byte = 0;
        std::from_chars(rest_.data() + i + 2, rest_.data() + i + 4, byte, 16);
        out += static_cast<char>(byte);
        i += 3;
      }
    }
    return fail("a string does not end");
  }

  Result<TensorType> type() {
    skip_space();
    const size_t end = rest_.find(']');
    if (end == std::string_view::npos) return fail("expected a type");
    const auto parsed = parse_tensor_type(rest_.substr(0, end + 1));
    if (!parsed) return fail("'" + std::string(rest_.substr(0, end + 1)) + "' is no type");
    rest_.remove_prefix(end + 1);
    return *parsed;
  }

  Result<> input_or_constant(Graph& graph, Names& names, bool constant) {
    KILN_ASSIGN_OR_RETURN(const uint32_t number, value_number());
    KILN_RETURN_IF_ERROR(expect(":"));
    KILN_ASSIGN_OR_RETURN(const TensorType tensor_type, type());
    KILN_ASSIGN_OR_RETURN(const std::string name, string());
    if (!constant) {
      names[number] = graph.add_input(name, tensor_type);
      return Ok();
    }
    KILN_RETURN_IF_ERROR(expect("= "));
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    auto bytes = parse_constant(tensor_type, line);
    if (!bytes.ok()) return fail(bytes.error().message);
    rest_.remove_prefix(line.size());
    names[number] = graph.add_constant(name, tensor_type, std::move(*bytes));
    return Ok();
  }

  Result<std::shared_ptr<const Graph>> body() {
    KILN_ASSIGN_OR_RETURN(Graph parsed, graph());
    return std::shared_ptr<const Graph>(std::make_shared<Graph>(std::move(parsed)));
  }

  Result<Op> op_with_bodies(const Operation& operation) {
    if (operation.name == "if") {
      If op;
      KILN_ASSIGN_OR_RETURN(op.then_body, body());
      KILN_ASSIGN_OR_RETURN(op.else_body, body());
      return Op{op};
    }
    if (operation.name == "loop") {
      Loop op{nullptr, operation.get_int("carried", 0), operation.get_int("trip_count", -1)};
      KILN_ASSIGN_OR_RETURN(op.body, body());
      return Op{op};
    }
    if (operation.name == "plugin") {
      return Op{PluginCall{operation.get_string("name", ""), operation.get_string("version", ""),
                           operation.get_string("attributes", "")}};
    }
    if (operation.name == "region") {
      Region op;
      while (to_string(op.kind) != operation.get_string("kind", "")) {
        if (op.kind == Region::Kind::kPlugin) return fail("unknown kind of region");
        op.kind = static_cast<Region::Kind>(static_cast<int>(op.kind) + 1);
      }
      op.rule = operation.get_string("rule", "");
      if (const auto* value = operation.find("origins")) {
        if (const auto* list = std::get_if<std::vector<std::string>>(value)) op.origins = *list;
      }
      KILN_ASSIGN_OR_RETURN(op.body, body());
      return Op{op};
    }
    auto op = op_from_operation(operation);
    if (!op.ok()) return fail(op.error().message);
    return op;
  }

  Result<> node(Graph& graph, Names& names) {
    std::vector<uint32_t> outputs;
    do {
      KILN_ASSIGN_OR_RETURN(const uint32_t number, value_number());
      outputs.push_back(number);
    } while (accept(","));
    KILN_RETURN_IF_ERROR(expect("="));
    skip_space();
    auto operation = parse_operation(rest_);
    if (!operation.ok()) return fail(operation.error().message);
    KILN_RETURN_IF_ERROR(expect("("));
    std::vector<ValueId> inputs;
    while (!accept(")")) {
      if (!inputs.empty()) KILN_RETURN_IF_ERROR(expect(","));
      KILN_ASSIGN_OR_RETURN(const ValueId id, value(names));
      inputs.push_back(id);
    }
    KILN_RETURN_IF_ERROR(expect(":"));
    std::vector<TensorType> types;
    std::vector<std::string> value_names;
    do {
      KILN_ASSIGN_OR_RETURN(types.emplace_back(), type());
      value_names.emplace_back();
      skip_space();
      if (rest_.starts_with('"')) {
        KILN_ASSIGN_OR_RETURN(value_names.back(), string());
      }
    } while (accept(","));
    if (types.size() != outputs.size()) return fail("as many types as outputs are needed");
    KILN_RETURN_IF_ERROR(expect(";"));
    KILN_ASSIGN_OR_RETURN(std::string name, string());
    std::vector<std::string> origins;
    if (accept("from ")) {
      do {
        KILN_ASSIGN_OR_RETURN(origins.emplace_back(), string());
      } while (accept(","));
    }
    KILN_ASSIGN_OR_RETURN(Op op, op_with_bodies(*operation));
    const NodeId id = graph.add_typed_node(std::move(name), std::move(origins), std::move(op),
                                           std::move(inputs), types);
    for (size_t i = 0; i < outputs.size(); ++i) {
      names[outputs[i]] = graph.node(id).outputs[i];
      graph.set_value_name(graph.node(id).outputs[i], value_names[i]);
    }
    return Ok();
  }

  Result<Graph> graph() {
    constexpr int kMaxDepth = 64;
    if (++depth_ > kMaxDepth) return fail("bodies are nested deeper than 64");
    KILN_RETURN_IF_ERROR(expect("{"));
    Graph result;
    Names names;
    while (!accept("}")) {
      if (accept("input ")) {
        KILN_RETURN_IF_ERROR(input_or_constant(result, names, false));
      } else if (accept("const ")) {
        KILN_RETURN_IF_ERROR(input_or_constant(result, names, true));
      } else if (accept("output ")) {
        KILN_ASSIGN_OR_RETURN(const ValueId id, value(names));
        result.mark_output(id);
        KILN_ASSIGN_OR_RETURN(std::string name, string());
        result.set_output_name(result.outputs().size() - 1, std::move(name));
      } else {
        KILN_RETURN_IF_ERROR(node(result, names));
      }
    }
    --depth_;
    return result;
  }

  std::string_view whole_, rest_;
  int depth_ = 0;
};

}  // namespace

Result<Graph> parse_text(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(Graph graph, Parser(text).parse());
  auto valid = graph.verify();
  if (!valid.ok()) return std::move(valid).error().context("graph text");
  return graph;
}

}  // namespace kiln::ir
