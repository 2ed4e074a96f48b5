#include "formats/report/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kiln::report {
namespace {

Report named(const std::string& name) {
  Report report;
  report.build.model_name = name;
  report.points = {{.name = "b1", .batch = 1}};
  return report;
}

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

nlohmann::json reports_of(const std::string& page) {
  const std::string open = "id=\"reports\">";
  const size_t from = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(ReportPage, HoldsTheReports) {
  const TitledReport reports[] = {{"a.engine", named("a")}, {"b.engine", named("b")}};
  const auto held = reports_of(to_page(reports));
  ASSERT_EQ(held.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(held[i]["file"], reports[i].title);
    EXPECT_EQ(held[i]["report"], nlohmann::json::parse(to_json(reports[i].report)));
  }
}

// Whatever a model names its nodes, the page has the elements of any other.
TEST(ReportPage, NamesCannotEndTheScript) {
  const TitledReport tame[] = {{"m.engine", named("m")}};
  const std::string expected = to_page(tame);
  for (const std::string name : {"</script><script>", "</SCRIPT>", "<!-- <script>", "-->", "a\n  b",
                                 "\"],\\", "\xff\xfe", "<!-- script -->\n", "<!-- style -->\n"}) {
    const TitledReport harmful[] = {{name, named(name)}};
    const std::string page = to_page(harmful);
    EXPECT_EQ(count(page, "<"), count(expected, "<")) << name;
    const auto held = reports_of(page);
    if (name[0] == '\xff') continue;  // not UTF-8, replaced
    EXPECT_EQ(held[0]["file"], name);
    EXPECT_EQ(held[0]["report"]["build"]["model_name"], name);
  }
}

TEST(ReportPage, LoadsNothing) {
  const TitledReport reports[] = {{"m.engine", named("m")}};
  const std::string page = to_page(reports);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* part : {" src=", "@import", "url(", "fetch(", "innerHTML", "<!-- s", "<!-- r"}) {
    EXPECT_EQ(count(page, part), 0) << part;
  }
  EXPECT_EQ(count(page, "http"), 2);  // http-equiv and the namespace of SVG: names, not addresses
}

}  // namespace
}  // namespace kiln::report
