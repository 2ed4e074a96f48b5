#include "engine/cuda/open_devices.h"

namespace kiln::cuda {

Result<std::shared_ptr<const Device>> OpenDevices::get(
    int ordinal, const std::function<Result<std::shared_ptr<const Device>>()>& open) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_[ordinal];
  for (;;) {
    if (auto device = entry.device.lock()) return device;
    if (entry.closed) break;
    changed_.wait(lock);
  }
  KILN_ASSIGN_OR_RETURN(auto device, open());
  entry.device = device;
  entry.closed = false;
  return device;
}

void OpenDevices::note_closed(int ordinal) {
  {
    const std::lock_guard lock(mutex_);
    entries_[ordinal].closed = true;
  }
  changed_.notify_all();
}

}  // namespace kiln::cuda
