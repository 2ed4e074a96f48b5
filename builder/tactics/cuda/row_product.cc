#include "builder/tactics/cuda/row_product.h"

#include <algorithm>
#include <utility>

#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/cuda/cublaslt_epilogue.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// The product as it is, where nothing follows it.
SplitRest nothing_but(const ir::Graph& body, ir::ValueId product) {
  SplitRest rest;
  rest.anchor_result = body.type(product);
  rest.inputs = {product};
  const DType dtype = rest.anchor_result.dtype;
  const int64_t elements = rest.anchor_result.elements();
  rest.kernel.dims = {{elements, false}};
  rest.kernel.buffers = {{dtype, elements, false}, {dtype, elements, true}};
  loop::Expr load, store;
  load.kind = loop::Expr::Kind::kLoad;
  load.dtype = dtype;
  load.map.terms = {{0, 1, 0, 1}};
  store = load;
  store.kind = loop::Expr::Kind::kStore;
  store.buffer = 1;
  store.args = {0};
  rest.kernel.exprs = {load, store};
  return rest;
}

}  // namespace

Result<RowProduct> match_row_product(const TacticQuery& query) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(FusedMatmul fused, match_matmul(body, false));
  const cuda::MatmulProblem& p = fused.problem;
  if (!p.batch.empty()) return refuse("the product is one of a batch");
  if (p.a.transposed || p.a.leading != p.k) return refuse("rows of the left side lie apart");
  if (!p.b.transposed || p.b.leading != p.k) {
    return refuse("columns of the right side are not stored one after the other");
  }
  RowProduct product;
  product.operands = std::move(fused.operands);
  product.dtype = p.operand_dtype;
  product.rows = p.m;
  product.columns = p.n;
  product.depth = p.k;
  const auto inputs = body.inputs();
  const auto weights = std::ranges::find(inputs, product.operands[1]) - inputs.begin();
  product.constant_weights = query.constants[static_cast<size_t>(weights)].has_value();
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_anchor(body));
  const ir::ValueId result = body.result(chain.anchor);
  if (body.outputs()[0] == result) {
    product.rest = nothing_but(body, result);
  } else {
    KILN_ASSIGN_OR_RETURN(product.rest, split_rest(body, chain));
  }
  return product;
}

void leave_rest(const ir::Graph& body, RowProduct& product) {
  SplitRest alone = nothing_but(body, product.rest.inputs[product.rest.anchor_input]);
  product.behind = std::exchange(product.rest, std::move(alone));
}

void add_launch(LocalLaunch launch, const ir::Graph& body, const RowProduct& product,
                Lowered& lowered) {
  if (product.behind) return add_launch_and_rest(std::move(launch), body, *product.behind, lowered);
  launch.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  lowered.steps.emplace_back(std::move(launch));
}

std::vector<LocalBuffer> inputs_of(const ir::Graph& body, const RowProduct& product,
                                   Lowered& lowered) {
  std::vector<LocalBuffer> inputs;
  for (ir::ValueId operand : product.operands) inputs.push_back(buffer_of(body, operand, lowered));
  for (size_t i = 0; i < product.rest.inputs.size(); ++i) {
    if (i == product.rest.anchor_input) continue;
    inputs.push_back(buffer_of(body, product.rest.inputs[i], lowered));
  }
  return inputs;
}

}  // namespace kiln
