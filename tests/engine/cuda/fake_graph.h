// What the handles of the fake driver stand for: functions, graphs, streams.
#pragma once
#include <cuda.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kiln::testing {

using Work = std::function<CUresult()>;
// Thread `thread` of a launch, on parameters that are addresses of f32, then on those of its tensor
// maps.
using Kernel = void (*)(size_t thread, const std::vector<float*>& parameters);

struct FakeFunction {
  Kernel kernel = nullptr;
  size_t parameters = 0;  // without tensor maps
  size_t maps = 0;
};
struct Launch {
  const FakeFunction* function = nullptr;
  size_t threads = 0;
  std::vector<float*> addresses;
};

struct FakeNode {
  Work work;
  std::optional<Launch> kernel;  // in place of work
};
// Nodes are shared with the instances made of it, which have launches of their own.
struct FakeGraph {
  std::vector<std::shared_ptr<FakeNode>> nodes;
};
struct FakeExec {
  std::vector<std::shared_ptr<const FakeNode>> nodes;
  std::map<const FakeNode*, Launch> launches;
};
struct FakeStream {
  bool capturing = false;
  FakeGraph* graph = nullptr;
};

}  // namespace kiln::testing
