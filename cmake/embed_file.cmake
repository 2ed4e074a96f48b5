# The script behind kiln_embed().
file(READ ${INPUT} text)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [==[
#include <string_view>

namespace @NAMESPACE@ {

std::string_view @FUNCTION@();
std::string_view @FUNCTION@() {
  return R"kiln(@text@)kiln";
}

}  // namespace @NAMESPACE@
]==])
