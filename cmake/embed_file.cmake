# The script behind kiln_embed().
set(text)
foreach(input IN LISTS INPUTS)
  file(READ ${input} one)
  string(APPEND text "${one}")
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [==[
#include <string_view>

namespace @NAMESPACE@ {

std::string_view @FUNCTION@();
std::string_view @FUNCTION@() {
  return R"kiln(@text@)kiln";
}

}  // namespace @NAMESPACE@
]==])
