#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "apps/engine-run/outcome.h"
#include "apps/engine-run/statistics.h"
#include "formats/report/quantity_text.h"

namespace kiln::run {
namespace {

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 256> text;
  const int length = std::snprintf(text.data(), text.size(), format, args...);
  return {text.data(), std::min(static_cast<size_t>(std::max(length, 0)), text.size() - 1)};
}

std::string head_lines(const Outcome& o) {
  std::string text = print("engine   %s: ", o.engine.c_str());
  text += o.info.model_name + " for " + o.info.target + ", " + o.info.precision + ", " +
          (o.info.verified ? "verified" : "NOT VERIFIED") + ", kiln " + o.info.kiln_version + "\n";
  text += "memory   weights " + report::bytes_text(o.info.weights_bytes) + ", " +
          std::to_string(o.contexts) + (o.contexts == 1 ? " context of " : " contexts of ") +
          report::bytes_text(o.info.context_bytes) + "\n";
  text += "point    " + o.point.name;
  if (o.rows > 0) text += ": " + std::to_string(o.rows) + (o.rows == 1 ? " row" : " rows");
  if (o.rows > 0 && o.rows < o.point.batch) {
    text += ", the other " + std::to_string(o.point.batch - o.rows) + " of the bucket are padding";
  }
  return text + "\n";
}

std::string input_lines(const Outcome& o) {
  std::string text;
  for (const NamedArray& input : o.inputs) {
    text += "input    " + input.name + " " + to_string(input.type);
    if (o.random_inputs) text += ", random (seed " + std::to_string(o.seed) + ")";
    text += "\n";
  }
  return text;
}

std::string output_line(const NamedArray& output) {
  std::string text = "output   " + output.name + " " + to_string(output.type);
  const auto values = to_doubles(output);
  if (!values.ok() || values->empty()) return text + "\n";
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  size_t finite = 0;
  for (double value : *values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    ++finite;
  }
  if (finite > 0) {
    text += print(": min %.6g, mean %.6g, max %.6g", low, sum / static_cast<double>(finite), high);
  }
  if (finite < values->size()) {
    text += ", " + std::to_string(values->size() - finite) + " NaN or infinite";
  }
  constexpr size_t kShown = 5;
  text += "\n         [";
  for (size_t i = 0; i < std::min(kShown, values->size()); ++i) {
    text += print(i == 0 ? "%.6g" : " %.6g", (*values)[i]);
  }
  return text + (values->size() > kShown ? " ...]\n" : "]\n");
}

std::string index_text(const Shape& index) {
  std::string text = "[";
  for (size_t i = 0; i < index.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(index[i]);
  }
  return text + "]";
}

std::string comparison_lines(const Comparison& c) {
  std::string text =
      std::string(c.passed ? "correct  " : "WRONG    ") + c.name +
      print(": max error %.3g abs, %.3g rel, min row cosine %.8f (row %lld)", c.max_abs_error,
            c.max_rel_error, c.min_row_cosine, static_cast<long long>(c.worst_row)) +
      "\n";
  if (c.elements == 0) return text;
  return text + "         worst element " + index_text(c.worst_index) +
         print(": %.9g, expected %.9g; %lld of %lld out of tolerance\n", c.worst_found,
               c.worst_expected, static_cast<long long>(c.wrong_elements),
               static_cast<long long>(c.elements));
}

std::string series_line(const char* name, const std::vector<double>& values) {
  if (values.empty()) return "";
  const Summary s = summarize(values);
  std::string text = print("%-16s", name);
  for (double value : {s.min, s.mean, s.median, s.p90, s.p95, s.p99, s.max}) {
    text += print(" %9.4g", value);
  }
  return text + "\n";
}

std::string gpu_lines(const Outcome& o) {
  if (o.info.target != "cuda") return "";
  const bool on_host = o.timing.memory == MemoryKind::kHost;
  std::string text = "tensors          in " +
                     std::string(on_host ? "page-locked host memory" : "the GPU's memory") + "\n";
  if (!o.gpu) return text;
  return text + "GPU              at begin " + to_text(o.gpu->first) +
         "\n                 at end   " + to_text(o.gpu->second) + "\n";
}

std::string benchmark_lines(const Outcome& o) {
  const Measurements& m = *o.measurements;
  const auto queries = static_cast<double>(m.latency_ms.size());
  std::string text = print(
      "\nbenchmark: %.0f queries over %.2f s by %d %s on %d %s, after %lld to warm up\n", queries,
      m.wall_s, o.timing.threads, o.timing.threads == 1 ? "thread" : "threads", o.contexts,
      o.contexts == 1 ? "context" : "contexts", static_cast<long long>(m.warmup_queries));
  text += print("throughput       %.6g queries/s", queries / m.wall_s);
  if (o.rows > 0)
    text += print(", %.6g samples/s", queries * static_cast<double>(o.rows) / m.wall_s);
  text += print("\n%-16s", "");
  for (const char* column : {"min", "mean", "median", "p90", "p95", "p99", "max"}) {
    text += print(" %9s", column);
  }
  const bool on_host = o.timing.memory == MemoryKind::kHost;
  return text + "\n" + series_line("latency ms", m.latency_ms) +
         series_line("device ms", m.device_ms) +
         series_line(on_host ? "to device ms" : "copy in ms", m.copy_in_ms) +
         series_line(on_host ? "to host ms" : "copy out ms", m.copy_out_ms) +
         series_line("enqueue ms", m.enqueue_ms) + gpu_lines(o);
}

}  // namespace

bool Outcome::passed() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& c) { return c.passed; });
}

std::string to_text(const Outcome& outcome) {
  std::string text = head_lines(outcome) + input_lines(outcome);
  for (const NamedArray& output : outcome.outputs) text += output_line(output);
  for (const Comparison& comparison : outcome.comparisons) text += comparison_lines(comparison);
  if (outcome.measurements) text += benchmark_lines(outcome);
  return text;
}

}  // namespace kiln::run
