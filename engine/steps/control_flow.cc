#include "engine/steps/control_flow.h"

#include <cstring>
#include <limits>

namespace kiln {
namespace {

bool is_true(const plan::BufferRef& condition, const Spaces& spaces) {
  // Any byte but 0: a bool that holds another value must not be read as one.
  return *static_cast<const unsigned char*>(spaces.read(condition)) != 0;
}

int64_t rounds_of(const plan::BufferRef& trip_count, const Spaces& spaces) {
  if (trip_count.space == plan::BufferRef::Space::kNone) return std::numeric_limits<int64_t>::max();
  int64_t rounds = 0;
  std::memcpy(&rounds, spaces.read(trip_count), sizeof(rounds));
  return rounds;
}

}  // namespace

Result<> run_step(const plan::Branch& step, size_t first, const Spaces& spaces,
                  const RunSpan& run_span) {
  if (is_true(step.condition, spaces)) return run_span(first, step.then_steps);
  return run_span(first + step.then_steps, step.else_steps);
}

Result<> run_step(const plan::Repeat& step, size_t first, const Spaces& spaces,
                  const RunSpan& run_span) {
  const bool conditional = step.condition.space != plan::BufferRef::Space::kNone;
  const int64_t rounds = rounds_of(step.trip_count, spaces);
  void* iteration = spaces.write(step.iteration);
  for (int64_t round = 0; round < rounds; ++round) {
    if (conditional && !is_true(step.condition, spaces)) break;
    if (iteration != nullptr) std::memcpy(iteration, &round, sizeof(round));
    KILN_RETURN_IF_ERROR(run_span(first, step.body_steps));
  }
  return Ok();
}

}  // namespace kiln
