// TileCode writes what one thread does for the lanes of one chunk: loads, scalar functions,
// accumulation, stores. Whatever is the same for all lanes is computed once.
//
// In the text, b<n> is a buffer, x<n> the value of expr n in the scope, r<n> a pack of loaded
// elements, p<n> kept values, a<n> an accumulator, o<n> a pack to be stored, d<n> a dim, l the
// lane.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "builder/codegen/cuda/cuda_text.h"
#include "builder/codegen/cuda/kernel_facts.h"
#include "builder/codegen/cuda/lane_motion.h"
#include "builder/codegen/cuda/quick_functions.h"

namespace kiln::codegen {

// Indented lines.
class Lines {
 public:
  explicit Lines(size_t depth = 0) : depth_(depth) {}
  void add(const std::string& line) { text_ += std::string(2 * depth_, ' ') + line + "\n"; }
  void open(const std::string& line) {
    add(line.empty() ? "{" : line + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    add("}");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t depth_;
};

class TileCode {
 public:
  TileCode(const KernelFacts& facts, const Lanes& lanes, Lines& out);

  Motion motion(loop::ExprId id) const { return motions_[id]; }
  // The variable that holds an expr beyond a section, and its declaration with `chunks` copies;
  // 0: one, without an index.
  std::string kept_name(loop::ExprId id) const;
  std::string kept_declaration(loop::ExprId id, uint32_t chunks) const;
  // A pack of loaded elements, or the choice of one.
  bool is_pack(loop::ExprId id) const {
    return facts_.expr(id).kind != loop::Expr::Kind::kStore && motions_[id] == Motion::kPacked;
  }
  // From now on the expr is read from `place`, "r3[c]" or "x3", instead of being computed.
  void place(loop::ExprId id, const std::string& place) { places_[id] = place; }
  bool is_placed(loop::ExprId id) const { return places_.contains(id); }

  struct Section {
    std::vector<loop::ExprId> exprs;              // ascending; those placed already may be left out
    std::map<loop::ExprId, std::string> keep_at;  // assign these to a kept variable
    std::string store_guard;                      // stores happen if it holds; empty: always
    bool in_function = false;                     // still values are placed for what follows
  };
  void section(const Section& section);

  std::string accumulator(loop::ExprId reduce) const;
  bool accumulates_by_lane(loop::ExprId reduce) const { return motions_[reduce] != Motion::kStill; }

 private:
  std::string value(loop::ExprId id) const;
  bool has_value(loop::ExprId id) const;
  IndexText index(bool in_lane) const;
  std::string address(const loop::Expr& expr, bool in_lane) const;
  std::string load_text(loop::ExprId id, bool in_lane) const;
  std::string value_text(loop::ExprId id, bool in_lane) const;
  std::string pack_text(loop::ExprId id) const;
  const std::string& pack_name(loop::ExprId id) const;
  bool tests_first_lane(loop::ExprId id) const;
  bool divides_by_shared(const loop::Expr& expr) const;
  std::string divided_by_shared(const loop::Expr& expr) const;
  KnownTexts known_texts() const;
  std::string stored_value(const loop::Expr& store) const;
  void define(loop::ExprId id, bool in_lane, const Section& section);
  void define_pack(loop::ExprId id, const Section& section);
  void run_lanes(const std::vector<loop::ExprId>& ids, const Section& section);
  void unpack_operands(const std::vector<loop::ExprId>& ids);
  void write(loop::ExprId id, bool in_lane, const Section& section);

  const KernelFacts& facts_;
  Lanes lanes_;
  Lines& out_;
  std::vector<Motion> motions_;
  std::map<loop::ExprId, std::string> places_;  // beyond sections
  std::map<loop::ExprId, std::string> local_;   // in the current section
};

}  // namespace kiln::codegen
