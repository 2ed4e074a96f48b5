#include "builder/verify/time_engine.h"

#include <algorithm>
#include <array>

namespace kiln {

Result<double> time_engine(const Engine& engine, const std::string& point,
                           std::span<const HostTensor> inputs) {
  constexpr double kRoundUs = 7000;
  const auto& points = engine.info().points;
  const auto found =
      std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.name == point; });
  if (found == points.end()) {
    return Error{ErrorCode::kInternal, "the engine has no shape point '" + point + "'"};
  }
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto* data = const_cast<std::byte*>(inputs[i].bytes.data());  // inputs are never written
    in.push_back({found->inputs[i].name, inputs[i].type, data});
  }
  std::vector<std::vector<std::byte>> blocks;
  for (const TensorInfo& info : found->outputs) {
    blocks.emplace_back(static_cast<size_t>(info.type.bytes()));
    out.push_back({info.name, info.type, blocks.back().data()});
  }
  KILN_ASSIGN_OR_RETURN(ExecutionContext context, engine.create_context());
  KILN_RETURN_IF_ERROR(context.enqueue(in, out));
  const auto number = static_cast<size_t>(found - points.begin());
  KILN_ASSIGN_OR_RETURN(const double once, context.time_on_device(number, 1));
  const int runs = std::clamp(static_cast<int>(kRoundUs / std::max(once, 1.0)), 1, 100);
  std::array<double, 7> rounds;
  for (double& us : rounds) {
    KILN_ASSIGN_OR_RETURN(us, context.time_on_device(number, runs));
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace kiln
