// Transposes through shared memory. Loads that step by one along another dim than the stores do are
// read along their own dim into a tile, and taken out of it along the stores' dim.
#include <algorithm>
#include <map>

#include "builder/codegen/cuda/kernel_text.h"
#include "builder/codegen/cuda/loop_code.h"
#include "builder/codegen/cuda/tile_code.h"

namespace kiln::codegen {
namespace {

using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

// Elements that a thread may have in unrolled code.
constexpr int64_t kMaxUnrolled = 128;
constexpr int64_t kMaxSharedBytes = 48 << 10;
// A row of a tile is this many bytes longer than its elements, so that a column's lie in
// different banks.
constexpr int64_t kPadBytes = 4;

std::string number(int64_t value) { return std::to_string(value); }

class TileWriter {
 public:
  TileWriter(const KernelFacts& facts, const CudaSchedule& schedule, const KernelFrame& frame)
      : facts_(facts),
        s_(schedule),
        frame_(frame),
        index_(facts.wide_index ? "long long" : "int") {}

  Result<CudaSource> run() {
    if (facts_.reduced != 0 || facts_.levels != 1) return unsuited(s_, "the kernel reduces");
    if (s_.group < 16 || s_.group > 128) return unsuited(s_, "tiles have edges of 16 to 128");
    if (rounds() * s_.vector > kMaxUnrolled) return unsuited(s_, "too few threads for the tile");
    KILN_RETURN_IF_ERROR(choose_dims());
    KILN_RETURN_IF_ERROR(choose_loads());
    const int64_t blocks = place_blocks();
    for (const ExprId id : loads_) declare_tile(id);
    straight();
    fill();
    out_.add("__syncthreads();");
    empty();
    return one_kernel(frame_, s_, blocks, out_.text());
  }

 private:
  int64_t extent(uint32_t dim) const { return facts_.kernel.dims[dim].extent; }
  bool steps_along(const Expr& e, uint32_t dim) const {
    return std::ranges::any_of(e.map.terms, [&](const loop::MapTerm& term) {
      return term.dim == dim && term.divisor == 1 && term.modulus == 0 && term.stride == 1;
    });
  }

  bool packed_along_to(ExprId id) const {
    return s_.vector > 1 && motions(facts_, Lanes{to_, s_.vector})[id] == Motion::kPacked;
  }

  // Tiles of 16-bit elements hold pairs along `to_`, so that shared memory is written and read by
  // whole words.
  bool in_pairs(ExprId id) const { return s_.vector > 1 && bits_of(facts_.expr(id).dtype) == 16; }
  bool in_pairs() const {
    return std::ranges::all_of(loads_, [this](ExprId id) { return in_pairs(id); });
  }

  // Stores step by one along `to_`; most of what is left is read along `from_`.
  Result<> choose_dims() {
    const std::vector<uint32_t> order = facts_.ordered(facts_.parallel);
    if (order.size() < 2) return unsuited(s_, "the kernel has fewer than two dims");
    to_ = order.back();
    std::map<uint32_t, int64_t> elements;
    for (const Expr& e : facts_.kernel.exprs) {
      if (e.kind != Kind::kLoad || steps_along(e, to_)) continue;
      for (const uint32_t dim : order) {
        if (dim != to_ && steps_along(e, dim)) {
          elements[dim] += facts_.kernel.buffers[e.buffer].elements;
        }
      }
    }
    if (elements.empty()) return unsuited(s_, "nothing is read along another dim than written");
    from_ = std::ranges::max_element(elements, {}, [](auto& entry) { return entry.second; })->first;
    if (extent(to_) % s_.vector != 0 || extent(from_) % s_.vector != 0) {
      return unsuited(s_, "a dim is no multiple of the vector");
    }
    if (s_.vector > s_.group) return unsuited(s_, "the vector is longer than the tile");
    return Ok();
  }

  Result<> choose_loads() {
    int64_t bytes = 0;
    const DimSet both = DimSet{1} << from_ | DimSet{1} << to_;
    for (ExprId id = 0; id < facts_.kernel.exprs.size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (!facts_.live[id] || e.kind != Kind::kLoad || !steps_along(e, from_)) continue;
      if (steps_along(e, to_) || (facts_.varying[id] & both) != both) continue;
      if (packed_along_to(id)) continue;
      loads_.push_back(id);
      bytes += s_.group * (s_.group * std::max(8, bits_of(e.dtype)) / 8 + kPadBytes);
    }
    if (bytes > kMaxSharedBytes) return unsuited(s_, "the tiles do not fit into shared memory");
    return Ok();
  }

  // Blocks are numbered with the dims outside of the tile first, then tiles along `to_`.
  int64_t place_blocks() {
    const auto tiles = [&](uint32_t dim) { return (extent(dim) + s_.group - 1) / s_.group; };
    std::vector<uint32_t> rest = facts_.ordered(facts_.parallel);
    std::erase(rest, to_);
    std::erase(rest, from_);
    const std::string block = "(" + index_ + ")blockIdx.x";
    const int64_t across = tiles(from_), along = tiles(to_);
    out_.add("const " + index_ + " first_from = " + block + " % " + number(across) + " * " +
             number(s_.group) + ";");
    out_.add("const " + index_ + " first_to = " + block + " / " + number(across) + " % " +
             number(along) + " * " + number(s_.group) + ";");
    out_.add("const " + index_ + " rest = " + block + " / " + number(across * along) + ";");
    for (const std::string& line : dims_of_flat(facts_, rest, "rest")) out_.add(line);
    int64_t blocks = across * along;
    for (const uint32_t dim : rest) blocks *= extent(dim);
    return blocks;
  }

  void declare_tile(ExprId id) {
    const DType dtype = facts_.expr(id).dtype;
    if (in_pairs()) {
      out_.add("KILN_SHARED unsigned t" + number(id) + "[" + number(s_.group) + "][" +
               number(s_.group / 2 + 1) + "];");
      return;
    }
    const int64_t pad = std::max<int64_t>(1, kPadBytes * 8 / std::max(8, bits_of(dtype)));
    out_.add("KILN_SHARED Bits<" + std::string(element_type(dtype)) + "> t" + number(id) + "[" +
             number(s_.group) + "][" + number(s_.group + pad) + "];");
  }

  // What does not vary in the tile.
  void straight() {
    const DimSet both = DimSet{1} << from_ | DimSet{1} << to_;
    TileCode::Section section{{}, {}, "", true};
    for (ExprId id = 0; id < facts_.kernel.exprs.size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (facts_.live[id] && e.kind != Kind::kStore && !facts_.varies(id, both)) {
        section.exprs.push_back(id);
      }
    }
    fixed_ = section.exprs;
    TileCode(facts_, {}, out_).section(section);
  }

  TileCode code_along(uint32_t dim) {
    TileCode code(facts_, s_.vector == 1 ? Lanes{} : Lanes{dim, s_.vector, s_.stream}, out_);
    for (const ExprId id : fixed_) {
      if (facts_.expr(id).kind != Kind::kConstant) code.place(id, "x" + number(id));
    }
    return code;
  }

  // Threads side by side take vectors along `inner`; with `rows` 2 each takes those of two
  // neighbouring rows in turn, unless `step` 2 asks for the first alone.
  void open_rounds(uint32_t inner, const std::string& inner_first, uint32_t outer,
                   const std::string& outer_first, int64_t rows = 1, int64_t step = 1) {
    const int64_t wide = s_.group / s_.vector, total = wide * s_.group / rows;
    const std::string round = rows == 1 ? "c" : "c / 2", row = rows == 1 ? "" : " * 2 + c % 2";
    out_.add("#pragma unroll");
    out_.open("for (int c = 0; c < " + number(rounds(rows)) + "; c += " + number(step) + ")");
    out_.add("const int unit = " + round + " * " + number(s_.threads) + " + (int)threadIdx.x;");
    if (total % s_.threads != 0) out_.add("if (unit >= " + number(total) + ") continue;");
    out_.add("const int inner = unit % " + number(wide) + " * " + number(s_.vector) + ";");
    out_.add("const int outer = unit / " + number(wide) + row + ";");
    const auto fix = [&](uint32_t dim, const std::string& first, const std::string& step) {
      out_.add("const " + index_ + " d" + number(dim) + " = " + first + " + " + step + ";");
      if (extent(dim) % s_.group != 0) {
        out_.add("if (d" + number(dim) + " >= " + number(extent(dim)) + ") continue;");
      }
    };
    fix(inner, inner_first, "inner");
    fix(outer, outer_first, "outer");
  }

  void for_lanes(const std::string& line) {
    out_.add("#pragma unroll");
    out_.add("for (int l = 0; l < " + number(s_.vector) + "; ++l) " + line);
  }

  int64_t rounds(int64_t rows = 1) const {
    const int64_t units = int64_t{s_.group} * s_.group / s_.vector / rows;
    return (units + s_.threads - 1) / s_.threads * rows;
  }

  // The word of a tile in pairs at [row][2 * pair]. Rows are an odd number of words apart: the
  // threads of a warp that write side by side are on neighbouring banks, but for those 32 rows
  // further, which the swizzle moves past the pairs that a warp has in a row.
  std::string word(ExprId id, const std::string& row, const std::string& pair) const {
    std::string at = pair;
    if (s_.group > 32) at = "(" + at + ") ^ " + row + " / 32 % 2 * " + number(s_.vector / 2);
    return "t" + number(id) + "[" + row + "][" + at + "]";
  }

  // Lane "l" of a kept load, as the bits that lie in memory.
  std::string kept_bits(const TileCode& code, ExprId id, const std::string& chunk = "[c]") const {
    const std::string kept = code.kept_name(id) + chunk;
    if (code.is_pack(id)) return "bits_at(" + kept + ", l)";
    return std::string(element_type(facts_.expr(id).dtype)) + "::encode(" + kept +
           (code.motion(id) == Motion::kScattered ? "[l]" : "") + ", true)";
  }

  // All of the thread's loads begin before the first is put into the tile.
  void fill() {
    TileCode code = code_along(from_);
    std::vector<bool> needed(facts_.kernel.exprs.size());
    for (const ExprId id : loads_) needed[id] = true;
    TileCode::Section section;
    for (auto id = static_cast<ExprId>(needed.size()); id-- > 0;) {
      if (!needed[id]) continue;
      section.exprs.insert(section.exprs.begin(), id);
      for (const ExprId operand : facts_.operands(id)) needed[operand] = true;
    }
    const int64_t rows = in_pairs() ? 2 : 1;
    for (const ExprId id : loads_) {
      out_.add(code.kept_declaration(id, static_cast<uint32_t>(rounds(rows))));
      section.keep_at[id] = code.kept_name(id) + "[c]";
    }
    open_rounds(from_, "first_from", to_, "first_to", rows);
    code.section(section);
    out_.close();
    open_rounds(from_, "first_from", to_, "first_to", rows, rows);
    if (rows == 2) out_.add("const int pair = outer / 2;");
    for (const ExprId id : loads_) {
      if (rows == 2) {
        for_lanes(word(id, "(inner + l)", "pair") + " = (unsigned)" + kept_bits(code, id) +
                  " | (unsigned)" + kept_bits(code, id, "[c + 1]") + " << 16;");
        continue;
      }
      for_lanes("t" + number(id) + "[inner + l][outer] = " + kept_bits(code, id) + ";");
    }
    out_.close();
  }

  void empty() {
    TileCode code = code_along(to_);
    TileCode::Section section;
    for (ExprId id = 0; id < facts_.kernel.exprs.size(); ++id) {
      if (facts_.live[id]) section.exprs.push_back(id);
    }
    open_rounds(to_, "first_to", from_, "first_from");
    for (const ExprId id : loads_) {
      const Expr& e = facts_.expr(id);
      const std::string name = code.kept_name(id);
      out_.add(code.kept_declaration(id, 0));
      if (in_pairs()) {
        const std::string pack = "w" + number(id);
        out_.add("Pack<" + std::string(element_type(e.dtype)) + ", " + number(s_.vector) + "> " +
                 pack + ";");
        out_.add("#pragma unroll");
        out_.add("for (int w = 0; w < " + number(s_.vector / 2) + "; ++w) " + pack +
                 ".words[w] = " + word(id, "outer", "inner / 2 + w") + ";");
        std::string lane = name + (code.motion(id) == Motion::kScattered ? "[l]" : "");
        for_lanes(lane.append(" = get(").append(pack).append(", l);"));
        code.place(id, name);
        continue;
      }
      for_lanes(name + (code.motion(id) == Motion::kScattered ? "[l]" : "") + " = " +
                std::string(element_type(e.dtype)) + "::decode(t" + number(id) +
                "[outer][inner + l]);");
      code.place(id, name);
    }
    code.section(section);
    out_.close();
  }

  const KernelFacts& facts_;
  const CudaSchedule& s_;
  const KernelFrame& frame_;
  std::string index_;
  Lines out_{1};
  uint32_t from_ = 0, to_ = 0;
  std::vector<ExprId> loads_;  // through tiles
  std::vector<ExprId> fixed_;  // the same in the whole tile
};

}  // namespace

Result<CudaSource> emit_tiles(const KernelFacts& facts, const CudaSchedule& schedule,
                              const KernelFrame& frame) {
  return TileWriter(facts, schedule, frame).run();
}

}  // namespace kiln::codegen
