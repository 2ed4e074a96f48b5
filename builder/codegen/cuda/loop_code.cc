#include "builder/codegen/cuda/loop_code.h"

#include <algorithm>

#include "builder/codegen/cuda/loop_levels.h"
#include "builder/codegen/cuda/tile_code.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

std::string number(int64_t value) { return std::to_string(value); }

class LoopWriter {
 public:
  LoopWriter(const KernelFacts& facts, const Spread& spread)
      : facts_(facts),
        spread_(spread),
        levels_(find_loop_levels(facts, spread.looped, spread.keep)),
        tile_(facts, spread.lanes, out_),
        looped_dims_(facts.ordered(spread.looped)) {}

  std::string run() {
    if (spread_.keep) declare_kept();
    for (size_t l = 0; l < levels_.levels.size(); ++l) {
      const LoopLevel& level = levels_.levels[l];
      straight(level.before, "");
      for (const ExprId id : level.reduces) start(id);
      if (l == 0 && spread_.keep) load_kept();
      if (!level.inside.empty()) run_loop(level.inside);
      for (const ExprId id : level.reduces) finish(id);
      if (spread_.keep && !level.reduces.empty()) forget_kept();
    }
    straight(levels_.after, spread_.leader_guard);
    return out_.text();
  }

 private:
  // --- outside of loops ---

  void straight(const std::vector<ExprId>& ids, const std::string& guard) {
    if (ids.empty()) return;
    TileCode::Section section{ids, {}, guard, true};
    for (const ExprId id : ids) {
      const bool kept = tile_.motion(id) != Motion::kStill && facts_.expr(id).kind != Kind::kStore;
      if (!kept) continue;
      section.keep_at[id] = tile_.kept_name(id);
      out_.add(tile_.kept_declaration(id, 0));
    }
    tile_.section(section);
    for (const auto& [id, name] : section.keep_at) tile_.place(id, name);
  }

  void start(ExprId id) {
    const Expr& e = facts_.expr(id);
    const std::string start = std::string(reduction_type(e.reduce_fn)) + "::start<" +
                              std::string(element_type(e.dtype)) + ">();";
    const std::string type(register_type(e.dtype));
    const std::string shared = spread_.shared ? spread_.shared(id) : "";
    if (!shared.empty()) out_.add(shared);
    if (!tile_.accumulates_by_lane(id)) {
      return out_.add(type + " a" + number(id) + " = " + start);
    }
    out_.add(type + " a" + number(id) + "[" + number(spread_.lanes.count) + "];");
    for_lanes();
    out_.add(tile_.accumulator(id) + " = " + start);
    out_.close();
  }

  void finish(ExprId id) {
    const Expr& e = facts_.expr(id);
    const std::string type(register_type(e.dtype));
    const std::string accumulator = tile_.accumulator(id);
    const std::string result = spread_.combine ? spread_.combine(e, accumulator) : accumulator;
    if (!tile_.accumulates_by_lane(id)) {
      out_.add("const " + type + " x" + number(id) + " = " + result + ";");
      return tile_.place(id, "x" + number(id));
    }
    if (result != accumulator) {
      for_lanes();
      out_.add(accumulator + " = " + result + ";");
      out_.close();
    }
    tile_.place(id, "a" + number(id));
  }

  void for_lanes() {
    out_.add("#pragma unroll");
    out_.open("for (int l = 0; l < " + number(spread_.lanes.count) + "; ++l)");
  }

  // --- loops ---

  void open_chunk(const std::string& chunk) {
    const std::string type = facts_.wide_index ? "long long" : "int";
    if (!looped_dims_.empty()) {
      out_.add("const " + type + " at = " + spread_.position(chunk) + ";");
      if (!spread_.limit.empty()) out_.add("if (at >= " + spread_.limit + ") continue;");
    }
    for (const std::string& line : dims_of_flat(facts_, looped_dims_, "at")) out_.add(line);
  }

  void for_chunks(const std::string& chunk, int64_t count, const std::string& offset) {
    out_.add("#pragma unroll");
    out_.open("for (int " + chunk + " = 0; " + chunk + " < " + number(count) + "; ++" + chunk +
              ")");
    open_chunk(offset.empty() ? chunk : "(" + offset + " + " + chunk + ")");
  }

  void run_loop(const std::vector<ExprId>& ids) {
    if (spread_.keep) {
      for_chunks("c", spread_.chunks, "");
      tile_.section({ids, kept_at(ids), spread_.store_guard, false});
      out_.close();
      for (const ExprId id : ids) place_kept(id);
    } else if (spread_.batch == 1) {
      out_.open("for (int c = 0; c < " + number(spread_.chunks) + "; ++c)");
      open_chunk("c");
      tile_.section({ids, {}, spread_.store_guard, false});
      out_.close();
    } else {
      run_batches(ids);
    }
  }

  // The loads of several chunks, then their computation.
  void run_batches(const std::vector<ExprId>& ids) {
    const bool one = spread_.chunks <= spread_.batch;
    const std::string offset = one ? "" : "batch";
    if (one)
      out_.open("");
    else
      out_.open("for (int batch = 0; batch < " + number(spread_.chunks) +
                "; batch += " + number(spread_.batch) + ")");
    std::vector<ExprId> loads;
    std::vector<ExprId> closure = loads_first(ids, loads);
    for (const ExprId id : loads) out_.add(tile_.kept_declaration(id, spread_.batch));
    TileCode inner = tile_;
    if (!loads.empty()) {
      TileCode::Section section{closure, {}, "", false};
      for (const ExprId id : loads) {
        section.keep_at[id] = tile_.kept_name(id) + "[c]";
      }
      for_chunks("c", spread_.batch, offset);
      tile_.section(section);
      out_.close();
    }
    for (const ExprId id : loads) inner.place(id, tile_.kept_name(id) + "[c]");
    for_chunks("c", spread_.batch, offset);
    inner.section({ids, {}, spread_.store_guard, false});
    out_.close();
    out_.close();
  }

  // The exprs that computing the loads takes, ascending; `loads` are those of them to be kept.
  std::vector<ExprId> loads_first(const std::vector<ExprId>& ids, std::vector<ExprId>& loads) {
    std::vector<bool> needed(facts_.kernel.exprs.size());
    for (const ExprId id : ids) needed[id] = facts_.expr(id).kind == Kind::kLoad;
    for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
      if (!needed[*at]) continue;
      for (const ExprId operand : facts_.operands(*at)) needed[operand] = true;
    }
    std::vector<ExprId> closure;
    for (const ExprId id : ids) {
      if (!needed[id]) continue;
      closure.push_back(id);
      if (facts_.expr(id).kind == Kind::kLoad) loads.push_back(id);
    }
    return closure;
  }

  // --- kept values ---

  void declare_kept() {
    for (const ExprId id : levels_.kept) {
      out_.add(tile_.kept_declaration(id, static_cast<uint32_t>(spread_.chunks)));
    }
  }

  bool is_kept(ExprId id) const { return std::ranges::binary_search(levels_.kept, id); }
  std::string kept_place(ExprId id) const { return tile_.kept_name(id) + "[c]"; }
  void place_kept(ExprId id) {
    if (is_kept(id)) tile_.place(id, kept_place(id));
  }

  std::map<ExprId, std::string> kept_at(const std::vector<ExprId>& ids) const {
    std::map<ExprId, std::string> places;
    for (const ExprId id : ids) {
      if (is_kept(id) && !tile_.is_placed(id)) places[id] = kept_place(id);
    }
    return places;
  }

  // All loads of the row that wait for nothing begin before anything is computed.
  void load_kept() {
    std::vector<ExprId> ids;
    for (const ExprId id : levels_.kept) {
      const Expr& e = facts_.expr(id);
      if (e.kind == Kind::kLoad && e.map.gathers.empty()) ids.push_back(id);
    }
    if (ids.empty()) return;
    for_chunks("c", spread_.chunks, "");
    tile_.section({ids, kept_at(ids), "", false});
    out_.close();
    for (const ExprId id : ids) place_kept(id);
  }

  // Values computed from the loads are computed again after a reduction: registers are dearer.
  void forget_kept() {
    std::vector<ExprId> packs;
    for (const ExprId id : levels_.kept) {
      if (tile_.is_placed(id) && tile_.motion(id) == Motion::kPacked) packs.push_back(id);
    }
    if (packs.empty()) return;
    out_.add("#pragma unroll");
    out_.open("for (int c = 0; c < " + number(spread_.chunks) + "; ++c)");
    for (const ExprId id : packs) out_.add("forget(" + kept_place(id) + ".words);");
    out_.close();
  }

  const KernelFacts& facts_;
  const Spread& spread_;
  Lines out_{1};
  LoopLevels levels_;
  TileCode tile_;
  std::vector<uint32_t> looped_dims_;
};

}  // namespace

std::string loop_body(const KernelFacts& facts, const Spread& spread) {
  return LoopWriter(facts, spread).run();
}

int64_t kept_registers(const KernelFacts& facts, const Spread& spread) {
  const std::vector<Motion> motion = motions(facts, spread.lanes);
  int64_t registers = 0;
  for (const ExprId id : find_loop_levels(facts, spread.looped, true).kept) {
    const Expr& e = facts.expr(id);
    const int64_t lanes = motion[id] == Motion::kStill ? 1 : spread.lanes.count;
    const int wide = e.dtype == DType::kF64 || e.dtype == DType::kI64 || e.dtype == DType::kU64;
    const int64_t bits = motion[id] == Motion::kPacked ? bits_of(e.dtype) : 32 << wide;
    registers += (lanes * bits + 31) / 32;
  }
  return registers * spread.chunks;
}

std::vector<std::string> dims_of_flat(const KernelFacts& facts, const std::vector<uint32_t>& dims,
                                      const std::string& flat) {
  const std::string type = facts.wide_index ? "long long" : "int";
  const std::string as_unsigned = facts.wide_index ? "(unsigned long long)" : "(unsigned)";
  const std::string suffix = facts.wide_index ? "ull" : "u";
  std::vector<std::string> lines;
  int64_t inner = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    const int64_t extent = std::max<int64_t>(facts.kernel.dims[dims[k]].extent, 1);
    std::string digit = as_unsigned + flat;
    if (inner > 1) digit += " / " + number(inner) + suffix;
    if (k > 0) digit += " % " + number(extent) + suffix;
    const std::string index = dims.size() == 1 ? flat : "(" + type + ")(" + digit + ")";
    std::string& line = lines.emplace_back("const " + type + " d");
    line += number(dims[k]) + " = " + index + ";";
    inner *= extent;
  }
  return lines;
}

}  // namespace kiln::codegen
