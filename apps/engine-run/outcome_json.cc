#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/engine-run/outcome.h"
#include "apps/engine-run/statistics.h"

namespace kiln::run {
namespace {

using Json = nlohmann::ordered_json;

// Numbers that are not finite become null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json tensors(const std::vector<NamedArray>& arrays) {
  Json list = Json::array();
  for (const NamedArray& array : arrays) {
    list.push_back({{"name", array.name},
                    {"dtype", std::string(to_string(array.type.dtype))},
                    {"shape", array.type.shape}});
  }
  return list;
}

Json comparison(const Comparison& c) {
  return {{"name", c.name},
          {"passed", c.passed},
          {"elements", c.elements},
          {"wrong_elements", c.wrong_elements},
          {"max_abs_error", number(c.max_abs_error)},
          {"max_rel_error", number(c.max_rel_error)},
          {"worst_index", c.worst_index},
          {"worst_found", number(c.worst_found)},
          {"worst_expected", number(c.worst_expected)},
          {"min_row_cosine", number(c.min_row_cosine)},
          {"worst_row", c.worst_row}};
}

Json series(const std::vector<double>& values) {
  const Summary s = summarize(values);
  return {{"min", s.min}, {"mean", s.mean}, {"median", s.median}, {"p90", s.p90},
          {"p95", s.p95}, {"p99", s.p99},   {"max", s.max},       {"cv", s.cv}};
}

Json gpu_state(const GpuState& s) {
  return {{"sm_mhz", s.sm_mhz},
          {"most_sm_mhz", s.most_sm_mhz},
          {"memory_mhz", s.memory_mhz},
          {"most_memory_mhz", s.most_memory_mhz},
          {"temperature_c", s.temperature_c},
          {"power_w", s.power_w},
          {"held_back_by", slowdown_text(s.slowdowns)},
          {"processes", s.processes}};
}

Json benchmark(const Outcome& o) {
  const Measurements& m = *o.measurements;
  const auto queries = static_cast<double>(m.latency_ms.size());
  Json json = {{"queries", m.latency_ms.size()},
               {"warmup_queries", m.warmup_queries},
               {"wall_s", m.wall_s},
               {"threads", o.timing.threads},
               {"contexts", o.contexts},
               {"queries_per_s", number(queries / m.wall_s)}};
  if (o.rows > 0) {
    json["samples_per_s"] = number(queries * static_cast<double>(o.rows) / m.wall_s);
  }
  const bool on_host = o.timing.memory == MemoryKind::kHost;
  if (o.info.target == "cuda") json["tensors"] = on_host ? "page-locked host memory" : "GPU memory";
  const std::pair<const char*, const std::vector<double>*> all[] = {
      {"latency_ms", &m.latency_ms},
      {"device_ms", &m.device_ms},
      {on_host ? "host_to_device_ms" : "copy_in_ms", &m.copy_in_ms},
      {on_host ? "device_to_host_ms" : "copy_out_ms", &m.copy_out_ms},
      {"enqueue_ms", &m.enqueue_ms}};
  for (const auto& [name, values] : all) {
    if (!values->empty()) json[name] = series(*values);
  }
  if (o.gpu) json["gpu"] = {{"begin", gpu_state(o.gpu->first)}, {"end", gpu_state(o.gpu->second)}};
  return json;
}

}  // namespace

std::string to_json(const Outcome& o) {
  Json json = {{"engine", o.engine},
               {"kiln_version", o.info.kiln_version},
               {"model", o.info.model_name},
               {"target", o.info.target},
               {"device", o.info.device},
               {"device_address", o.info.device_address},
               {"precision", o.info.precision},
               {"verified", o.info.verified},
               {"weights_bytes", o.info.weights_bytes},
               {"context_bytes", o.info.context_bytes},
               {"point", o.point.name},
               {"rows", o.rows},
               {"bucket", o.point.batch},
               {"inputs", tensors(o.inputs)},
               {"outputs", tensors(o.outputs)}};
  if (o.random_inputs) json["seed"] = o.seed;
  if (!o.comparisons.empty()) {
    json["passed"] = o.passed();
    for (const Comparison& c : o.comparisons) json["comparisons"].push_back(comparison(c));
  }
  if (o.measurements) json["benchmark"] = benchmark(o);
  json["notes"] = o.notes;
  json["warnings"] = o.warnings;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kiln::run
