#include "builder/tactics/cuda/pointwise_conv_provider.h"

#include <algorithm>
#include <map>

#include "builder/tactics/cuda/cublaslt_provider.h"
#include "builder/tactics/cuda/few_rows_provider.h"
#include "builder/tactics/cuda/many_rows_provider.h"
#include "builder/tactics/cuda/pointwise_conv.h"

namespace kiln {
namespace {

// Of each form: cuDNN's engines are tried as well.
constexpr size_t kMostOfAForm = 4;

struct ProductProvider {
  std::string_view name;
  std::vector<Tactic> (*candidates)(const TacticQuery& query, std::string& refusal);
  Result<Lowered> (*lower)(const TacticQuery& query, const Tactic& tactic);
};

// Raise the version of this provider with that of one of them.
constexpr ProductProvider kProducts[] = {
    {"few-rows", few_rows_candidates, few_rows_lower},
    {"many-rows", many_rows_candidates, many_rows_lower},
    {"cublaslt", cublaslt_candidates, cublaslt_lower},
};

// The query of a product with the region's buffers.
TacticQuery product_query(const TacticQuery& query, const ir::Region& product) {
  TacticQuery made{product, {}, {}, query.constants, query.device, query.plugins, query.cuda};
  for (ir::ValueId id : product.body->inputs()) made.inputs.push_back(product.body->type(id));
  for (ir::ValueId id : product.body->outputs()) made.outputs.push_back(product.body->type(id));
  return made;
}

}  // namespace

std::vector<Tactic> pointwise_conv_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr) {
    refusal = "is for GPUs";
    return {};
  }
  const auto product = as_product(query.region);
  if (!product.ok()) {
    refusal = product.error().message;
    return {};
  }
  const TacticQuery products = product_query(query, *product);
  std::vector<Tactic> tactics;
  for (const ProductProvider& provider : kProducts) {
    std::string why;
    std::map<std::string, size_t> forms;
    for (const Tactic& tactic : provider.candidates(products, why)) {
      if (forms[tactic.key.substr(0, tactic.key.find('/'))]++ >= kMostOfAForm) continue;
      tactics.push_back({std::string(provider.name) + ":" + tactic.key});
    }
    if (!why.empty())
      refusal += (refusal.empty() ? "" : "; ") + std::string(provider.name) + ": " + why;
  }
  return tactics;
}

Result<Lowered> pointwise_conv_lower(const TacticQuery& query, const Tactic& tactic) {
  const size_t colon = tactic.key.find(':');
  const auto provider =
      std::ranges::find(kProducts, tactic.key.substr(0, colon), &ProductProvider::name);
  if (colon == std::string::npos || provider == std::end(kProducts)) {
    return Error{ErrorCode::kUnsupported, "'" + tactic.key + "' is no tactic of products"};
  }
  KILN_ASSIGN_OR_RETURN(const ir::Region product, as_product(query.region));
  return provider->lower(product_query(query, product), {tactic.key.substr(colon + 1)});
}

}  // namespace kiln
