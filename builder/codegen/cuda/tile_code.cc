#include "builder/codegen/cuda/tile_code.h"

#include <algorithm>

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

std::string number(uint32_t value) { return std::to_string(value); }

}  // namespace

TileCode::TileCode(const KernelFacts& facts, const Lanes& lanes, Lines& out)
    : facts_(facts), lanes_(lanes), out_(out), motions_(motions(facts, lanes)) {}

std::string TileCode::kept_name(ExprId id) const { return (is_pack(id) ? "r" : "p") + number(id); }

std::string TileCode::kept_declaration(ExprId id, uint32_t chunks) const {
  const Expr& e = facts_.expr(id);
  std::string type(register_type(e.dtype));
  std::string extents = chunks > 0 ? "[" + number(chunks) + "]" : "";
  if (motions_[id] == Motion::kPacked) {
    type = "Pack<" + std::string(element_type(e.dtype)) + ", " + number(lanes_.count) + ">";
  } else if (motions_[id] == Motion::kScattered) {
    extents += "[" + number(lanes_.count) + "]";
  }
  return type + " " + kept_name(id) + extents + ";";
}

std::string TileCode::accumulator(ExprId reduce) const {
  return "a" + number(reduce) + (accumulates_by_lane(reduce) ? "[l]" : "");
}

// --- texts ---

std::string TileCode::value(ExprId id) const {
  const Expr& e = facts_.expr(id);
  if (e.kind == Kind::kConstant) return constant_text(e.dtype, e.constant);
  if (const auto found = local_.find(id); found != local_.end()) return found->second;
  const std::string& place = places_.at(id);
  return motions_[id] == Motion::kScattered ? place + "[l]" : place;
}

// Whether it was computed in this section, or is placed as a value.
bool TileCode::has_value(ExprId id) const {
  const auto local = local_.find(id);
  return local != local_.end() ? local->second.starts_with('x')
                               : places_.contains(id) && !is_pack(id);
}

IndexText TileCode::index(bool in_lane) const {
  return {facts_.kernel, facts_.wide_index,
          [this, in_lane](uint32_t dim) {
            const std::string name = "d" + number(dim);
            const bool moves = in_lane && lanes_.count > 1 && dim == lanes_.dim;
            return moves ? "(" + name + " + l)" : name;
          },
          [this](ExprId id) { return value(id); }};
}

std::string TileCode::address(const Expr& expr, bool in_lane) const {
  return "b" + number(expr.buffer) + ", " + index(in_lane).map(expr.map);
}

std::string TileCode::load_text(ExprId id, bool in_lane) const {
  const Expr& e = facts_.expr(id);
  const std::string type(element_type(e.dtype));
  const bool packed = !in_lane && motions_[id] == Motion::kPacked;
  const std::string types = type + (packed ? ", " + number(lanes_.count) : "");
  const std::string load = lanes_.stream && facts_.touches_once[id] ? "load_once<" : "load<";
  std::string read = (packed ? load : "read<") + types + ">(" + address(e, in_lane) + ")";
  const bool never = std::ranges::any_of(e.map.gathers, [](auto& g) { return g.extent == 0; });
  const std::string inside = never ? "false" : index(in_lane).bounds(e.bounds);
  if (inside.empty()) return read;
  const std::string constant = constant_text(e.dtype, e.constant);
  const std::string fill = packed ? "splat<" + types + ">(" + constant + ")" : constant;
  return inside == "false" ? fill : inside + " ? " + read + " : " + fill;
}

std::string TileCode::value_text(ExprId id, bool in_lane) const {
  const Expr& e = facts_.expr(id);
  switch (e.kind) {
    case Kind::kLoad:
      return load_text(id, in_lane);
    case Kind::kIota: {
      const std::string map = index(in_lane).map(e.map);
      return "(" + std::string(register_type(e.dtype)) + ")(" + map + ")";
    }
    default:
      if (tests_first_lane(id)) {
        return scalar_text(facts_.kernel, e, [&](ExprId arg) {
          return motions_[arg] == Motion::kStill ? value(arg) : value_text(arg, false);
        });
      }
      if (divides_by_shared(e)) return divided_by_shared(e);
      if (auto quick = quick_text(facts_, id, known_texts())) return *std::move(quick);
      return scalar_text(facts_.kernel, e, [this](ExprId arg) { return value(arg); });
  }
}

// A test whose result is that of the first lane for all, though what it tests moves.
bool TileCode::tests_first_lane(ExprId id) const {
  const Expr& e = facts_.expr(id);
  return e.kind == Kind::kApply && motions_[id] == Motion::kStill &&
         std::ranges::any_of(e.args, [&](ExprId arg) { return motions_[arg] != Motion::kStill; });
}

const std::string& TileCode::pack_name(ExprId id) const {
  const auto local = local_.find(id);
  return local != local_.end() ? local->second : places_.at(id);
}

std::string TileCode::pack_text(ExprId id) const {
  const Expr& e = facts_.expr(id);
  if (e.kind == Kind::kLoad) return load_text(id, false);
  return value(e.args[0]) + " ? " + pack_name(e.args[1]) + " : " + pack_name(e.args[2]);
}

KnownTexts TileCode::known_texts() const {
  return {[this](ExprId id) { return value(id); }, [this](ExprId id) { return has_value(id); }};
}

// A row's elements by the row's own norm.
bool TileCode::divides_by_shared(const Expr& expr) const {
  if (expr.kind != Kind::kApply || expr.fn != ScalarFn::kDiv || !is_float(expr.dtype)) return false;
  const ExprId divisor = expr.args[1];
  if (facts_.level[divisor] == 0 || facts_.varies(divisor, facts_.reduced)) return false;
  if (!facts_.varies(expr.args[0], facts_.reduced)) return false;
  return !facts_.makes_whole;
}

// The reciprocal is computed once; it is finite, and no subnormal number, where the divisor's range
// says so.
std::string TileCode::divided_by_shared(const Expr& expr) const {
  const Range& divisor = facts_.ranges[expr.args[1]];
  const bool plain = bits_of(expr.dtype) <= 32 && divisor.low > 0x1p-100;
  const std::string x = value(expr.args[0]), d = value(expr.args[1]);
  const std::string type(element_type(expr.dtype));
  return plain ? "op_mul<" + type + ">(" + x + ", 1.0f / " + d + ")"
               : "divide_by_shared<" + type + ">(" + x + ", " + d + ")";
}

// --- sections ---

void TileCode::section(const Section& section) {
  std::vector<ExprId> in_lanes;
  for (const ExprId id : section.exprs) {
    const Expr& e = facts_.expr(id);
    if (e.kind == Kind::kConstant || is_placed(id)) continue;
    const bool still = motions_[id] == Motion::kStill;
    // Over lanes of a reduced dim even a value that is still is accumulated once for each.
    const bool over_lanes = e.kind == Kind::kReduce && contains(facts_.reduced, lanes_.dim);
    const bool once = over_lanes ? lanes_.count == 1 : still;
    if (once)
      define(id, false, section);
    else if (is_pack(id))
      define_pack(id, section);
    if (!once && !is_pack(id)) in_lanes.push_back(id);
  }
  if (!in_lanes.empty()) run_lanes(in_lanes, section);
  local_.clear();
}

void TileCode::define(ExprId id, bool in_lane, const Section& section) {
  const Expr& e = facts_.expr(id);
  if (e.kind == Kind::kStore) return write(id, in_lane, section);
  if (e.kind == Kind::kReduce) {
    const auto quick = quick_step_text(facts_, id, accumulator(id), known_texts());
    if (quick) return out_.add(accumulator(id) + " = " + *quick + ";");
    const std::string step = std::string(reduction_type(e.reduce_fn)) + "::step<" +
                             std::string(element_type(e.dtype)) + ">(";
    return out_.add(accumulator(id) + " = " + step + accumulator(id) + ", " + value(e.args[0]) +
                    ");");
  }
  const std::string name = "x" + number(id);
  out_.add("const " + std::string(register_type(e.dtype)) + " " + name + " = " +
           value_text(id, in_lane) + ";");
  if (section.in_function && !in_lane) return place(id, name);
  local_[id] = name;
  if (const auto keep = section.keep_at.find(id); keep != section.keep_at.end()) {
    out_.add(keep->second + (in_lane ? "[l] = " : " = ") + name + ";");
  }
}

void TileCode::define_pack(ExprId id, const Section& section) {
  if (const auto keep = section.keep_at.find(id); keep != section.keep_at.end()) {
    out_.add(keep->second + " = " + pack_text(id) + ";");
    local_[id] = keep->second;
    return;
  }
  const std::string name = "r" + number(id);
  out_.add("const auto " + name + " = " + pack_text(id) + ";");
  local_[id] = name;
}

void TileCode::run_lanes(const std::vector<ExprId>& ids, const Section& section) {
  const std::string count = number(lanes_.count);
  const auto packed_store = [&](ExprId id) {
    return facts_.expr(id).kind == Kind::kStore && motions_[id] == Motion::kPacked;
  };
  for (const ExprId id : ids) {
    if (!packed_store(id)) continue;
    out_.add("Pack<" + std::string(element_type(facts_.expr(id).dtype)) + ", " + count + "> o" +
             number(id) + ";");
  }
  out_.add("#pragma unroll");
  out_.open("for (int l = 0; l < " + count + "; ++l)");
  unpack_operands(ids);
  for (const ExprId id : ids) define(id, true, section);
  out_.close();
  for (const ExprId id : ids) {
    if (!packed_store(id)) continue;
    const std::string guard =
        section.store_guard.empty() ? "" : "if (" + section.store_guard + ") ";
    const bool once = lanes_.stream && facts_.touches_once[id];
    out_.add(guard + (once ? "store_once(" : "store(") + address(facts_.expr(id), false) + ", o" +
             number(id) + ");");
  }
}

void TileCode::unpack_operands(const std::vector<ExprId>& ids) {
  std::set<ExprId> operands;
  for (const ExprId id : ids) {
    for (const ExprId operand : facts_.operands(id)) operands.insert(operand);
  }
  for (const ExprId id : operands) {
    if (!is_pack(id)) continue;
    const std::string pack = pack_name(id);
    const std::string name = "x" + number(id);
    std::string lane = "const " + std::string(register_type(facts_.expr(id).dtype)) + " ";
    out_.add(lane.append(name).append(" = get(").append(pack).append(", l);"));
    local_[id] = name;
  }
}

// A cast to the stored type rounds what storing rounds anyway: it can be skipped.
std::string TileCode::stored_value(const Expr& store) const {
  const Expr& cast = facts_.expr(store.args[0]);
  const bool f8 = is_float(store.dtype) && bits_of(store.dtype) == 8;
  if (cast.kind == Kind::kCast && is_float(store.dtype) && bits_of(store.dtype) <= 16) {
    const ExprId from = cast.args[0];
    const DType dtype = facts_.expr(from).dtype;
    const bool as_float = is_float(dtype) && dtype != DType::kF64;
    if (as_float && has_value(from)) return value(from) + (f8 && !cast.saturate ? ", false" : "");
  }
  return value(store.args[0]) + (f8 && !store.saturate ? ", false" : "");
}

void TileCode::write(ExprId id, bool in_lane, const Section& section) {
  const Expr& e = facts_.expr(id);
  if (in_lane && motions_[id] == Motion::kPacked) {
    return out_.add("put(o" + number(id) + ", l, " + stored_value(e) + ");");
  }
  const std::string guard = section.store_guard.empty() ? "" : "if (" + section.store_guard + ") ";
  out_.add(guard + "write<" + std::string(element_type(e.dtype)) + ">(" + address(e, in_lane) +
           ", " + stored_value(e) + ");");
}

}  // namespace kiln::codegen
