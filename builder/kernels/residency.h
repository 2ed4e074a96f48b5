// How many blocks of a kernel a multiprocessor holds at once, made exact, for kernels that overlap
// with the next one and share out their work when they start.
//
// Where `blocks` of this kernel and `blocks` of the next fill a multiprocessor, every kernel of a
// chain finds its places evenly spread: its blocks can only go where those of the last but one
// were, and none of the one between leaves before these have all gone, as it waits for their
// results. With room for more, all blocks of a kernel go to the multiprocessors that are done
// first, and those then take several times as long as the others; with room for less, so do those
// that are left over. A counter that blocks draw work from would even that out as well, but it
// would have to be reset before the first block draws, which is before the kernel in front has
// ended.
#pragma once
#include <cstdint>

namespace kiln {

// Shared memory that each of `blocks` blocks asks for, so that they take half a multiprocessor.
// REQUIRES: blocks >= 1.
int64_t shared_bytes_in_half(uint32_t compute_capability, int64_t blocks);

// The most registers of a thread with which `threads` of them fit into half a multiprocessor, which
// has room for 1024 threads at most. REQUIRES: threads >= 1.
int64_t registers_in_half(int64_t threads);

}  // namespace kiln
