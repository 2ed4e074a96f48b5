// The report's fields, named once: writer and reader both walk them. A new field is a line here,
// one in report.h and one in FORMAT.md.
#pragma once
#include <concepts>
#include <type_traits>

#include "formats/report/report.h"

namespace kiln::report {

// `T` or `const T`: writing walks constant structs, reading fills them.
template <class S, class T>
concept MaybeConst = std::same_as<std::remove_const_t<S>, T>;

// walk(name, field) for every field, in the file's order.

template <MaybeConst<Candidate> S>
void walk_fields(S& s, auto&& walk) {
  walk("provider", s.provider);
  walk("key", s.key);
  walk("median_us", s.median_us);
  walk("spread_us", s.spread_us);
  walk("max_abs_error", s.max_abs_error);
  walk("max_rel_error", s.max_rel_error);
  walk("workspace_bytes", s.workspace_bytes);
  walk("verdict", s.verdict);
  walk("reason", s.reason);
}

template <MaybeConst<Refusal> S>
void walk_fields(S& s, auto&& walk) {
  walk("provider", s.provider);
  walk("reason", s.reason);
}

template <MaybeConst<Region> S>
void walk_fields(S& s, auto&& walk) {
  walk("name", s.name);
  walk("origins", s.origins);
  walk("kind", s.kind);
  walk("rule", s.rule);
  walk("types", s.types);
  walk("precision_asked", s.precision_asked);
  walk("precision_realised", s.precision_realised);
  walk("precision_reason", s.precision_reason);
  walk("precision_damage", s.precision_damage);
  walk("bytes_read", s.bytes_read);
  walk("bytes_written", s.bytes_written);
  walk("flops", s.flops);
  walk("roofline_share", s.roofline_share);
  walk("roofline_bound", s.roofline_bound);
  walk("host_reason", s.host_reason);
  walk("candidates", s.candidates);
  walk("refusals", s.refusals);
  walk("chosen", s.chosen);
  walk("time_share", s.time_share);
}

template <MaybeConst<NearMiss> S>
void walk_fields(S& s, auto&& walk) {
  walk("producer", s.producer);
  walk("consumer", s.consumer);
  walk("rule", s.rule);
  walk("reason", s.reason);
}

template <MaybeConst<MemoryBuffer> S>
void walk_fields(S& s, auto&& walk) {
  walk("name", s.name);
  walk("offset", s.offset);
  walk("bytes", s.bytes);
  walk("first_step", s.first_step);
  walk("last_step", s.last_step);
  walk("in_place_of", s.in_place_of);
}

template <MaybeConst<Memory> S>
void walk_fields(S& s, auto&& walk) {
  walk("arena_bytes", s.arena_bytes);
  walk("lower_bound_bytes", s.lower_bound_bytes);
  walk("workspace_bytes", s.workspace_bytes);
  walk("buffers", s.buffers);
}

template <MaybeConst<Verification> S>
void walk_fields(S& s, auto&& walk) {
  walk("what", s.what);
  walk("rows", s.rows);
  walk("max_abs_error", s.max_abs_error);
  walk("max_rel_error", s.max_rel_error);
  walk("min_cosine", s.min_cosine);
  walk("passed", s.passed);
  walk("detail", s.detail);
}

template <MaybeConst<PrecisionShare> S>
void walk_fields(S& s, auto&& walk) {
  walk("precision", s.precision);
  walk("regions", s.regions);
  walk("flops", s.flops);
  walk("bytes", s.bytes);
}

template <MaybeConst<PassRun> S>
void walk_fields(S& s, auto&& walk) {
  walk("name", s.name);
  walk("changed", s.changed);
  walk("rewrites", s.rewrites);
}

template <MaybeConst<Point> S>
void walk_fields(S& s, auto&& walk) {
  walk("name", s.name);
  walk("batch", s.batch);
  walk("sum_us", s.sum_us);
  walk("graph_us", s.graph_us);
  walk("regions", s.regions);
  walk("near_misses", s.near_misses);
  walk("passes", s.passes);
  walk("memory", s.memory);
  walk("verification", s.verification);
  walk("precision", s.precision);
}

template <MaybeConst<PeakRates> S>
void walk_fields(S& s, auto&& walk) {
  walk("bytes_per_s", s.bytes_per_s);
  walk("f32_flops_per_s", s.f32_flops_per_s);
  walk("tf32_flops_per_s", s.tf32_flops_per_s);
  walk("f16_flops_per_s", s.f16_flops_per_s);
  walk("byte_flops_per_s", s.byte_flops_per_s);
  walk("source", s.source);
}

template <MaybeConst<Build> S>
void walk_fields(S& s, auto&& walk) {
  walk("kiln_version", s.kiln_version);
  walk("model_name", s.model_name);
  walk("model_hash", s.model_hash);
  walk("target", s.target);
  walk("device", s.device);
  walk("compute_capability", s.compute_capability);
  walk("peak_rates", s.peak_rates);
  walk("precision", s.precision);
  walk("disabled_passes", s.disabled_passes);
  walk("versions", s.versions);
  walk("verified", s.verified);
}

template <MaybeConst<Stage> S>
void walk_fields(S& s, auto&& walk) {
  walk("name", s.name);
  walk("seconds", s.seconds);
}

template <MaybeConst<Report> S>
void walk_fields(S& s, auto&& walk) {
  walk("build", s.build);
  walk("points", s.points);
  walk("weights_bytes", s.weights_bytes);
  walk("notes", s.notes);
  walk("stages", s.stages);
}

}  // namespace kiln::report
