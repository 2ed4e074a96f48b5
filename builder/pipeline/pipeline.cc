#include "builder/pipeline/pipeline.h"

#include "builder/clean/absorb_transposes.h"
#include "builder/clean/collapse_view_chains.h"
#include "builder/clean/fold_channel_affine.h"
#include "builder/clean/fold_constants.h"
#include "builder/clean/merge_equal_nodes.h"
#include "builder/clean/remove_dead_code.h"
#include "builder/clean/simplify_algebra.h"
#include "builder/clean/simplify_casts.h"
#include "builder/clean/simplify_views.h"
#include "builder/clean/sink_transposes.h"
#include "builder/clean/slice_constant_gathers.h"
#include "builder/fuse/form_regions.h"

namespace kiln {
namespace {

constexpr auto kClean = Pass::Stage::kClean;
constexpr auto kFuse = Pass::Stage::kFuse;

constexpr Pass kPipeline[] = {
    {.name = "remove-dead-code", .stage = kClean, .run = clean::remove_dead_code},
    {.name = "fold-constants", .stage = kClean, .run = clean::fold_constants},
    {.name = "simplify-algebra", .stage = kClean, .run = clean::simplify_algebra},
    {.name = "simplify-casts", .stage = kClean, .run = clean::simplify_casts},
    {.name = "simplify-views", .stage = kClean, .run = clean::simplify_views},
    {.name = "slice-constant-gathers", .stage = kClean, .run = clean::slice_constant_gathers},
    {.name = "collapse-view-chains", .stage = kClean, .run = clean::collapse_view_chains},
    {.name = "sink-transposes", .stage = kClean, .run = clean::sink_transposes},
    {.name = "absorb-transposes", .stage = kClean, .run = clean::absorb_transposes},
    // After the constants of a normalisation are folded, so that each is one number a channel.
    {.name = "fold-channel-affine", .stage = kClean, .run = clean::fold_channel_affine},
    // Last, so that it sees the nodes that the other rules made equal.
    {.name = "merge-equal-nodes", .stage = kClean, .run = clean::merge_equal_nodes},

    // Everything after this meets regions alone.
    {.name = "form-regions", .stage = kFuse, .required = true, .run = fuse::form_regions},
};

}  // namespace

std::span<const Pass> default_pipeline() { return kPipeline; }

}  // namespace kiln
