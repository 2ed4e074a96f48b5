// A program with the lean runtime alone: it must link without host kernels, and a missing file is
// an error value that names it.
#include <iostream>
#include <string>

#include "engine/engine.h"

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "none.engine";
  const auto engine = kiln::Engine::load(path);
  if (engine.ok()) return 1;
  std::cout << engine.error().message << "\n";
  const bool named = engine.error().message.find(path) != std::string::npos;
  return named && engine.error().code == kiln::ErrorCode::kIo ? 0 : 1;
}
