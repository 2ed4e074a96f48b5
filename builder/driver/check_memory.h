// Whether this machine has the memory that a shape point takes, before the system ends a process
// that asked for more.
#pragma once
#include <cstdint>
#include <string>

#include "builder/ir/graph.h"
#include "formats/result.h"

namespace kiln {

// The least that building takes: a request with the engine's and the reference's answers to it, and
// any one operation of the reference with what it reads and makes. Constants do not count.
uint64_t least_memory_bytes(const ir::Graph& graph);

// What Linux says that a new process may have, within the control group's limit; UINT64_MAX where
// nothing says it.
uint64_t available_memory_bytes();

// kOutOfMemory, naming the shape point.
Result<> check_memory(const ir::Graph& graph, const std::string& point, uint64_t available_bytes);

}  // namespace kiln
