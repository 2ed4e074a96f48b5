#include "builder/pipeline/pipeline.h"

#include "builder/clean/absorb_transposes.h"
#include "builder/clean/collapse_view_chains.h"
#include "builder/clean/contract_quantised.h"
#include "builder/clean/convolve_before_resize.h"
#include "builder/clean/fold_channel_affine.h"
#include "builder/clean/fold_constants.h"
#include "builder/clean/merge_equal_nodes.h"
#include "builder/clean/patch_convolutions.h"
#include "builder/clean/remove_dead_code.h"
#include "builder/clean/simplify_algebra.h"
#include "builder/clean/simplify_casts.h"
#include "builder/clean/simplify_views.h"
#include "builder/clean/sink_transposes.h"
#include "builder/clean/slice_constant_gathers.h"
#include "builder/fuse/form_regions.h"
#include "builder/fuse/fuse_attention.h"
#include "builder/fuse/fuse_epilogues.h"
#include "builder/fuse/fuse_loops.h"
#include "builder/fuse/fuse_parallel_projections.h"
#include "builder/layout/choose_layouts.h"
#include "builder/layout/fit_attention.h"
#include "builder/layout/turn_weights.h"
#include "builder/precision/choose_precision.h"

namespace kiln {
namespace {

constexpr auto kClean = Pass::Stage::kClean;
constexpr auto kFuse = Pass::Stage::kFuse;
constexpr auto kPrecision = Pass::Stage::kPrecision;

constexpr Pass kPipeline[] = {
    {.name = "remove-dead-code", .stage = kClean, .run = clean::remove_dead_code},
    // Before folding, which would store a transposed copy of a weight that a flag can turn.
    {.name = "absorb-transposes", .stage = kClean, .run = clean::absorb_transposes},
    // Before folding as well, which would dequantise the weights.
    {.name = "contract-quantised", .stage = kClean, .run = clean::contract_quantised},
    {.name = "fold-constants", .stage = kClean, .run = clean::fold_constants},
    {.name = "simplify-algebra", .stage = kClean, .run = clean::simplify_algebra},
    {.name = "simplify-casts", .stage = kClean, .run = clean::simplify_casts},
    {.name = "simplify-views", .stage = kClean, .run = clean::simplify_views},
    {.name = "slice-constant-gathers", .stage = kClean, .run = clean::slice_constant_gathers},
    {.name = "collapse-view-chains", .stage = kClean, .run = clean::collapse_view_chains},
    {.name = "sink-transposes", .stage = kClean, .run = clean::sink_transposes},
    // After the constants of a normalisation are folded, so that each is one number a channel.
    {.name = "fold-channel-affine", .stage = kClean, .run = clean::fold_channel_affine},
    // After what scales and shifts channels has joined the convolution.
    {.name = "convolve-before-resize", .stage = kClean, .run = clean::convolve_before_resize},
    // After what scales and shifts channels is folded: a MatMul lies behind another layout.
    {.name = "patch-convolutions", .stage = kClean, .run = clean::patch_convolutions},
    // Last, so that it sees the nodes that the other rules made equal.
    {.name = "merge-equal-nodes", .stage = kClean, .run = clean::merge_equal_nodes},

    // Before anything else takes a softmax apart or joins its MatMuls with what is around them.
    {.name = "fuse-attention", .stage = kFuse, .run = fuse::fuse_attention},
    // After attention, which took the scales off the projections that it reads.
    {.name = "fuse-parallel-projections", .stage = kFuse, .run = fuse::fuse_parallel_projections},
    // Anchors take their epilogues before loops do: a pointwise node is free behind a contraction.
    {.name = "fuse-convolution-epilogues", .stage = kFuse, .run = fuse::fuse_convolution_epilogues},
    {.name = "fuse-contraction-epilogues", .stage = kFuse, .run = fuse::fuse_contraction_epilogues},
    {.name = "fuse-loops", .stage = kFuse, .run = fuse::fuse_loops},
    // Everything after this meets regions alone.
    {.name = "form-regions", .stage = kFuse, .required = true, .run = fuse::form_regions},

    // On regions, so that a value inside a kernel is never rounded.
    {.name = "choose-precision", .stage = kPrecision, .run = precision::choose_precision},
    // When types are known: only narrow convolutions care.
    {.name = "choose-layouts", .stage = kPrecision, .run = layout::choose_layouts},
    {.name = "fit-attention", .stage = kPrecision, .run = layout::fit_attention},
    // After the last that makes regions: masks become additive, in the type of what they mask.
    {.name = "fold-constant-regions", .stage = kPrecision, .run = clean::fold_constant_regions},
    {.name = "turn-weights", .stage = kPrecision, .run = layout::turn_weights},
};

}  // namespace

std::span<const Pass> default_pipeline() { return kPipeline; }

}  // namespace kiln
