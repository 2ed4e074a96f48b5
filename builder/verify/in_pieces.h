// Work that falls into pieces, on all cores.
#pragma once
#include <algorithm>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace kiln {

// How many pieces of work on `count` elements are worth a thread of their own: at least 1.
inline int64_t pieces_of(int64_t count) {
  constexpr int64_t kElementsAThread = 1 << 15;
  const auto cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return std::clamp<int64_t>(count / kElementsAThread, 1, cores);
}

// Calls work(i) for each i in [0, pieces), at once; the last is the caller's.
template <class Work>
void in_pieces(int64_t pieces, const Work& work) {
  std::vector<std::future<void>> parts;
  for (int64_t i = 0; i + 1 < pieces; ++i) {
    // Where no thread can be had, get() does the work.
    parts.push_back(
        std::async(std::launch::async | std::launch::deferred, [&work, i] { work(i); }));
  }
  if (pieces > 0) work(pieces - 1);
  for (std::future<void>& part : parts) part.get();
}

}  // namespace kiln
