// The report as a table for a terminal.
#pragma once
#include <string>

#include "formats/report/report.h"

namespace kiln::report {

struct TableOptions {
  // Every candidate with the reason why it lost, every refusal and every near miss.
  bool explain = false;
  // Regions printed for each point, the slowest first; 0: all, in the order they run.
  size_t most_regions = 0;
  bool memory_map = false;  // every buffer of the arena
};

// Lines end in '\n'; plain UTF-8 text without colours, up to 100 columns but for long names.
std::string to_table(const Report& report, const TableOptions& options = {});

}  // namespace kiln::report
