// parallel_for: spreads independent items over the machine's cores. Threads live for one call;
// that costs some 20 us a thread, so small work stays on the calling thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln::host {

// Scalar operations below which a second thread is not worth starting.
inline constexpr int64_t kParallelGrain = 1 << 18;

// Calls body(begin, end) for pieces that cover [0, count). `cost` is the number of scalar
// operations of one item. Items must not depend on each other: how they are cut into pieces must
// not show in the result. An exception in a piece is rethrown here.
template <class Body>
void parallel_for(int64_t count, int64_t cost, const Body& body) {
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const double work = static_cast<double>(count) * static_cast<double>(std::max<int64_t>(1, cost));
  const int64_t wanted =
      static_cast<int64_t>(std::min<double>(work / kParallelGrain, static_cast<double>(cores)));
  const int64_t pieces = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, count));
  if (pieces == 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  std::vector<std::exception_ptr> failures(pieces);
  const auto piece = [&](int64_t i) noexcept {
    const int64_t share = count / pieces, rest = count % pieces;
    const int64_t begin = i * share + std::min(i, rest);
    try {
      body(begin, begin + share + (i < rest ? 1 : 0));
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(pieces - 1);
  int64_t started = 1;
  try {
    for (; started < pieces; ++started) threads.emplace_back(piece, started);
  } catch (const std::system_error&) {
    for (int64_t i = started; i < pieces; ++i) piece(i);  // no more threads: do their share here
  }
  piece(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace kiln::host
