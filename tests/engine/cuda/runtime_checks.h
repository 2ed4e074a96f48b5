// What every engine of target cuda must hold, on a driver made of paper as on a GPU.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>

#include "tests/engine/cuda/wrapped_libraries.h"
#include "tests/engine/made_up_request.h"

namespace kiln::testing {

// An engine under test. `load` passes the options on, `libraries` among them.
struct Subject {
  std::shared_ptr<WrappedLibraries> libraries;
  std::function<Result<Engine>(const LoadOptions&)> load;
  int64_t most_rows = 0;
  uint64_t caller_bytes = 0;  // device memory that holds any request and its answer
};

// Result of `load` with this many contexts.
Result<Engine> load(const Subject& subject, int contexts);

// `threads` threads x `calls` calls of mixed sizes on one engine of four contexts: by infer() with
// tensors on the host, by infer() with tensors on the device, and by contexts of their own on
// streams of their own. Every answer has the bits of the one that was given alone.
void check_threads(const Subject& subject, int threads, int calls);

// Two contexts work at once, each in a stream of the caller; one context serves two streams in
// turn.
void check_streams(const Subject& subject);

// Tensors in device memory, somewhere else in every call.
void check_addresses(const Subject& subject, int calls);

// Kernels that begin before what they wait for has ended give the bits that they give without.
void check_programmatic_launch(const Subject& subject);

// Microseconds from the call of enqueue() to its return, the median of many, with tensors of `rows`
// rows in device memory and a stream of the caller.
double measure_enqueue(const Subject& subject, int64_t rows);

// Every call that can fail does, for every n, while loading and while running: the right error,
// nothing left behind, and the next try gives the right answer. Returns how many calls there are.
int check_failures(const Subject& subject,
                   std::initializer_list<WrappedLibraries::Failure> failures);

// An error of the device marks the context lost; other contexts and engines go on.
void check_lost_context(const Subject& subject);

// Loading and dropping the engine again and again leaves device memory as it was.
void check_load_cycles(const Subject& subject, int cycles);

// Bytes of device memory that the engine takes with this many contexts, beyond those of one load
// before, against those that its info tells.
struct MemoryUse {
  int64_t planned = 0, measured = 0;
  std::map<std::string, int64_t> by_function;
};
MemoryUse measure_memory(const Subject& subject, int contexts);

}  // namespace kiln::testing
