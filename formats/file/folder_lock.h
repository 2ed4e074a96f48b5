// FolderLock: keeps other processes, and other threads, from changing a file between our reading
// and our replacing it, as long as they lock its folder too.
#pragma once
#include <filesystem>

namespace kiln {

// Holds flock(2)'s exclusive lock of the folder. Waits 10 s at most, and does without where there
// is no lock to be had: what it guards against is rare, and the file stays whole in any case.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace kiln
