// Plan <-> the plan section (flatbuffers, plan.fbs). Blobs, report and weights are sections of
// their own.
#pragma once
#include <span>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln::engine_file {

struct EncodedPlan {
  std::vector<std::byte> plan;   // the plan section
  std::vector<std::byte> blobs;  // the blobs section
};

// kUnsupported if the plan section passes 2 GiB. Equal plans give equal bytes.
Result<EncodedPlan> encode_plan(const plan::Plan& plan);

// Verifies and decodes. The result's blobs are views of `blobs`; its weights and report are empty.
// Ids, ranges and sizes are not looked at: check_plan does that. kCorruptData on anything else.
Result<plan::Plan> decode_plan(std::span<const std::byte> plan, const SharedBytes& blobs);

}  // namespace kiln::engine_file
