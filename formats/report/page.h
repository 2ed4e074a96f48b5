// The report as a page for a browser: one file that loads nothing and works from a disk.
#pragma once
#include <span>
#include <string>

#include "formats/report/report.h"

namespace kiln::report {

struct TitledReport {
  std::string title;  // of the file that it came from, as the page names it
  Report report;
};

// HTML with the reports' JSON in it. Of two it also shows what differs.
std::string to_page(std::span<const TitledReport> reports);

}  // namespace kiln::report
