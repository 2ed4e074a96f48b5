// An example service: builds an engine from a model, then answers requests of several sizes from
// several threads.  service MODEL.onnx OUT.engine
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

#include "builder/builder.h"
#include "engine/engine.h"

namespace {

// y = relu(x W + b) of make_model.py, computed by hand: W = [1 2 3; 4 5 6], b = [-10 0 1].
std::vector<float> expected(const std::vector<float>& x) {
  std::vector<float> y;
  for (size_t row = 0; row < x.size(); row += 2) {
    const float a = x[row], b = x[row + 1];
    for (const float v : {a + 4 * b - 10, 2 * a + 5 * b, 3 * a + 6 * b + 1}) {
      y.push_back(v > 0 ? v : 0);
    }
  }
  return y;
}

bool answer(const kiln::Engine& engine, int64_t rows) {
  std::vector<float> x, y(static_cast<size_t>(rows) * 3);
  for (int64_t i = 0; i < rows * 2; ++i) x.push_back(static_cast<float>(i % 11 - 4));
  const kiln::Tensor input{"x", {kiln::DType::kF32, {rows, 2}}, x.data()};
  const kiln::Tensor output{"y", {kiln::DType::kF32, {rows, 3}}, y.data()};
  if (const auto done = engine.infer({&input, 1}, {&output, 1}); !done) {
    std::cerr << done.error().message << "\n";
    return false;
  }
  return y == expected(x);  // small whole numbers: exact in any order of summation
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  kiln::BuildOptions options;
  options.output = argv[2];
  options.target = kiln::BuildTarget::kHost;
  options.max_batch = 8;
  const auto built = kiln::build(argv[1], options);
  if (!built) {
    std::cerr << built.error().message << "\n";
    return 1;
  }

  const auto engine =
      kiln::Engine::load(argv[2], {.contexts = 2, .host_kernels = kiln::host_kernels()});
  if (!engine) {
    std::cerr << engine.error().message << "\n";
    return 1;
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int64_t i = 0; i < 50; ++i) wrong += !answer(*engine, (client + i) % 8 + 1);
    });
  }
  for (std::thread& client : clients) client.join();
  std::cout << "200 requests, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
}
