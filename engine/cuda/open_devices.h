// OpenDevices: the devices that are open, one for each GPU however many engines use it.
//
// They share the libraries' handles. A handle's end waits for everything on the GPU, which disturbs
// graphs that other threads capture: with a handle for each engine, builds side by side crashed in
// the end of one of cuBLASLt 13's. With one for each GPU none ends while an engine is there, and
// nothing is opened while one ends.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "formats/result.h"

namespace kiln::cuda {

class Device;

class OpenDevices {
 public:
  // The device that is open under this number, else the one that `open` makes. Waits while an
  // earlier one closes. Thread-safe; `open` is called by one thread at a time.
  Result<std::shared_ptr<const Device>> get(
      int ordinal, const std::function<Result<std::shared_ptr<const Device>>()>& open);
  // The device of this number is closed. Called once for each that `open` made. Thread-safe.
  void note_closed(int ordinal);

 private:
  struct Entry {
    std::weak_ptr<const Device> device;
    bool closed = true;  // false from the opening to the end of the closing
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Entry> entries_;  // guarded by mutex_
};

}  // namespace kiln::cuda
