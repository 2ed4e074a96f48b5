#include "formats/onnx/check_model.h"

namespace kiln::onnx {

Result<> check_model(const Model& model) {
  KILN_RETURN_IF_ERROR(check_names(model));     // the others print and compare names
  KILN_RETURN_IF_ERROR(check_versions(model));  // check_nodes looks up each domain's version
  KILN_RETURN_IF_ERROR(check_functions(model));
  KILN_RETURN_IF_ERROR(check_graphs(model));
  return check_nodes(model);
}

}  // namespace kiln::onnx
