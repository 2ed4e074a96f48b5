#include "formats/report/page.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace kiln::report {

// The files of page/, written by kiln_embed().
std::string_view page_frame();
std::string_view page_style();
std::string_view page_script();

namespace {

// JSON as the text of a <script>: without its line breaks and indents, which it has outside
// strings alone, and without '<', which it has inside strings alone; so nothing in it can end the
// element or open a comment.
void append_json(std::string& page, std::string_view json) {
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\n') {
      i = std::min(json.find_first_not_of(" \n", i), json.size()) - 1;
    } else if (json[i] == '<') {
      page += "\\u003c";
    } else {
      page += json[i];
    }
  }
}

void append_reports(std::string& page, std::span<const TitledReport> reports) {
  page += '[';
  for (const TitledReport& one : reports) {
    if (&one != reports.data()) page += ',';
    const nlohmann::json title = one.title;
    page += "{\"file\":";
    append_json(page, title.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    page += ",\"report\":";
    append_json(page, to_json(one.report));
    page += '}';
  }
  page += ']';
}

}  // namespace

std::string to_page(std::span<const TitledReport> reports) {
  std::string page;
  std::string_view frame = page_frame();
  const auto up_to = [&](std::string_view mark) {
    const size_t at = frame.find(mark);
    page += frame.substr(0, at);
    frame.remove_prefix(at + mark.size());
  };
  up_to("<!-- style -->\n");
  page += page_style();
  up_to("<!-- reports -->\n");
  append_reports(page, reports);
  page += '\n';
  up_to("<!-- script -->\n");
  page += page_script();
  page += frame;
  return page;
}

}  // namespace kiln::report
