// Where the spaces of a plan's buffers lie during one run.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "formats/engine_file/plan.h"

namespace kiln {

struct Spaces {
  std::byte* arena = nullptr;
  const std::byte* weights = nullptr;
  std::span<const void* const> inputs;
  std::span<void* const> outputs;

  // Null for an absent buffer. REQUIRES: a ref of a checked plan.
  const void* read(const plan::BufferRef& ref) const;
  // REQUIRES: the space is the arena or an output, or the buffer is absent.
  void* write(const plan::BufferRef& ref) const;
};

// The addresses that one call takes; kept in a context so that running allocates nothing.
struct CallAddresses {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  void resolve(const Spaces& spaces, const std::vector<plan::Operand>& from,
               const std::vector<plan::Operand>& to);
};

}  // namespace kiln
