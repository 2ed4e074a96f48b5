// The host's judge: runs a candidate as a one-region engine, on poisoned outputs between red zones,
// and compares it with the region's own body run node by node by plain kernels.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "builder/tactics/judge.h"

namespace kiln {

std::unique_ptr<Judge> make_host_judge(std::vector<std::filesystem::path> plugins);

}  // namespace kiln
