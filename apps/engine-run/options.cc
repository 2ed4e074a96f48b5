#include "apps/engine-run/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/parse_flags.h"
#include "apps/print_out.h"
#include "formats/file/atomic_file.h"
#include "formats/version.h"

namespace kiln::run {
namespace {

constexpr const char* kFooter = R"(
EXAMPLES
  engine-run m.engine                                random inputs, prints what comes out
  engine-run m.engine --inputs x.npz --outputs y.npz
  engine-run m.engine --input ids=ids.npy --input mask=mask.npy
  engine-run m.engine --inputs x.npz --reference y.npz --rtol 1e-3 --atol 1e-4
  engine-run m.engine --batch 8 --benchmark --duration 10
  engine-run m.engine --range input_ids=0:30521 --benchmark --threads 4
  engine-run m.engine --batch 8 --benchmark --no-transfers   the GPU alone, inputs already there

FIGURES OF THE COMPARISON
  An element's error is |found - expected|, relative to |expected|. Both are infinite where one side
  alone is NaN or infinite, the relative one also where 0 was expected and something else found.

FIGURES OF THE BENCHMARK
  A query is one request, a sample one row of it. Latency is one call of infer(), from the call to
  its return with the outputs written. Throughput is all queries over the time from the first one's
  begin to the last one's end. A percentile p is the smallest latency that at least p % of all
  queries did not exceed; the median of an even count is the mean of the middle two.
  On a GPU up to 200 requests follow, one at a time, for their parts: "device" is the GPU's time for
  the model, "to device" and "to host" that for the copies of inputs and outputs, all by events in
  the stream; "enqueue" is the host's time to put a request into the stream. The GPU's clocks are
  read after the warm-up and behind the last query.
  Warnings say why figures can't be trusted: too few queries, times that vary by more than 5 %
  (standard deviation over mean), halves of the run whose medians differ by more than 5 %, a busy
  machine; clocks that moved by more than 2 % or were held back, a GPU that others use, a host that
  takes longer to put a request into the stream than the GPU to run it.

EXIT CODES
  0 done, and every comparison passed   1 failed, or an output is wrong   2 bad command line)";

// What needs more than CLI11 to become an option.
struct Raw {
  std::vector<std::string> named_inputs, ranges;
  int64_t batch = 0;
  int contexts = 0;
  double cosine = 0;
  bool no_transfers = false;
};

// Bounds whose text does not clutter the help. NaN is outside of all.
CLI::Validator between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) {
          return std::string();
        }
        char expected[80];
        std::snprintf(expected, sizeof expected, "', expected %.15g to %.15g", low, high);
        return "found '" + text + expected;
      },
      "");
}

// `--name A --name B`: a value each, so that none swallows the engine's name.
CLI::Option* repeatable(CLI::Option* option) { return option->allow_extra_args(false); }

void describe_inputs(CLI::App& app, Options& o, Raw& raw) {
  constexpr const char* kGroup = "Inputs from files (repeatable)";
  repeatable(app.add_option("-i,--inputs", o.input_files,
                            "An .npz with an array for each input, or a .npy called like its "
                            "input (any name if there is only one input)"))
      ->type_name("FILE")
      ->group(kGroup);
  repeatable(app.add_option("--input", raw.named_inputs, "The .npy for the input NAME"))
      ->type_name("NAME=FILE")
      ->group(kGroup);
  constexpr const char* kRandom = "Random inputs (when no file is given)";
  app.add_option("--batch", raw.batch, "Rows, at most those of the largest bucket")
      ->type_name("N")
      ->check(between(1, 1e12))
      ->group(kRandom);
  app.add_option("--shape-point", o.random.point,
                 "The shape point to run (engine-inspect lists them); default: the first")
      ->type_name("NAME")
      ->group(kRandom);
  app.add_option("--seed", o.random.seed, "Equal seeds give equal inputs; default: 0")
      ->type_name("N")
      ->check(between(0, 1e18))
      ->group(kRandom);
  repeatable(app.add_option("--range", raw.ranges,
                            "Uniform values for the input NAME, both ends included; without it "
                            "floats are normal (mean 0, deviation 1), integers 0 or 1; repeatable"))
      ->type_name("NAME=LOW:HIGH")
      ->group(kRandom);
}

void describe_results(CLI::App& app, Options& o, Raw& raw) {
  app.add_option("-o,--outputs", o.outputs, "Write the outputs to this .npz")->type_name("FILE");
  constexpr const char* kGroup = "Comparison";
  app.add_option("--reference", o.reference,
                 "An .npz with the expected outputs, by name; exit code 1 if one differs")
      ->type_name("FILE")
      ->group(kGroup);
  const auto bound = [&](const char* name, double& value, double most, const char* what) {
    app.add_option(name, value, what)->type_name("X")->check(between(0, most))->group(kGroup);
  };
  bound("--rtol", o.tolerance.rtol, 1e30,
        "An element is right within atol + rtol * |expected|; integers must be equal; default: "
        "1e-3");
  bound("--atol", o.tolerance.atol, 1e30, "See --rtol; default: 1e-4");
  bound("--cosine", raw.cosine, 1,
        "The least cosine of any row (a slice along axis 0); replaces --rtol and --atol unless "
        "they are given too");
}

void describe_benchmark(CLI::App& app, Options& o, Raw& raw) {
  constexpr const char* kGroup = "Benchmark";
  app.add_flag("--benchmark", o.benchmark, "Run the request over and over")->group(kGroup);
  const auto timing = [&](const char* name, auto& value, double least, double most,
                          const char* type, const char* what) {
    app.add_option(name, value, what)->type_name(type)->check(between(least, most))->group(kGroup);
  };
  timing("--warmup", o.timing.warmup_ms, 0, 1e9, "MS", "Before measuring; default: 200 ms");
  timing("--duration", o.timing.duration_s, 0, 1e6, "S", "Measure so long, at least; default: 3 s");
  timing("--iterations", o.timing.iterations, 1, 1e12, "N",
         "Measure so many queries, at least; default: 10");
  timing("--threads", o.timing.threads, 1, 1024, "N", "Callers at the same time; default: 1");
  timing("--contexts", raw.contexts, 1, 1024, "N",
         "Execution contexts, on a GPU each with a stream of its own; default: one a thread");
  app.add_flag("--no-transfers", raw.no_transfers,
               "Keep inputs and outputs in the GPU's memory; default: page-locked memory of the "
               "host")
      ->group(kGroup);
}

void describe_rest(CLI::App& app, Options& o) {
  app.add_option("engine", o.engine, "The engine file")->required()->type_name("");
  repeatable(app.add_option("--plugin", o.plugins, "A plugin library that the engine needs"))
      ->type_name("FILE");
  app.add_flag("--allow-unverified", o.allow_unverified, "Run an engine that nothing has verified");
  app.add_flag("--json", o.json, "Print JSON instead of text; what is infinite or NaN is null");
  app.add_flag("-q,--quiet", o.quiet, "Print errors and warnings only");
  app.set_version_flag("--version", kVersion);
  app.footer(kFooter);
}

// A flag that would do nothing is a mistake of whoever gave it.
Result<> check_combinations(const CLI::App& app, const Options& o) {
  const auto refuse = [&](std::initializer_list<const char*> flags, const char* why) -> Result<> {
    for (const char* flag : flags) {
      if (app.count(flag) == 0) continue;
      return Error{ErrorCode::kInvalidArgument, std::string(flag) + " " + why};
    }
    return Ok();
  };
  if (!o.random_inputs()) {
    KILN_RETURN_IF_ERROR(refuse({"--batch", "--shape-point", "--seed", "--range"},
                                "is for random inputs, but inputs from files are given too"));
  }
  if (o.reference.empty()) {
    KILN_RETURN_IF_ERROR(refuse({"--rtol", "--atol", "--cosine"}, "needs --reference"));
  }
  if (!o.benchmark) {
    KILN_RETURN_IF_ERROR(refuse(
        {"--warmup", "--duration", "--iterations", "--threads", "--contexts", "--no-transfers"},
        "needs --benchmark"));
  }
  return Ok();
}

// Writing the outputs must not destroy what was read.
Result<> check_outputs(const Options& o) {
  if (o.outputs.empty()) return Ok();
  std::vector<std::filesystem::path> read = o.input_files;
  for (const NamedFile& input : o.named_inputs) read.push_back(input.file);
  read.insert(read.end(), {o.engine, o.reference});
  for (const auto& file : read) {
    if (file.empty() || !is_same_file(o.outputs, file)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 "--outputs would overwrite '" + file.string() + "', which is read"};
  }
  return check_can_write(o.outputs);
}

Result<> complete(const CLI::App& app, const Raw& raw, Options& o) {
  for (const std::string& text : raw.named_inputs) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return Error{ErrorCode::kInvalidArgument,
                   "--input: found '" + text + "', expected NAME=FILE.npy"};
    }
    o.named_inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  for (const std::string& text : raw.ranges) {
    KILN_ASSIGN_OR_RETURN(auto range, parse_range(text));
    o.random.ranges.insert_or_assign(range.first, range.second);
  }
  KILN_RETURN_IF_ERROR(check_combinations(app, o));
  KILN_RETURN_IF_ERROR(check_outputs(o));
  if (raw.batch > 0) o.random.batch = raw.batch;
  if (app.count("--cosine") > 0) {
    o.tolerance.cosine = raw.cosine;
    o.tolerance.elements = app.count("--rtol") + app.count("--atol") > 0;
  }
  if (raw.no_transfers) o.timing.memory = MemoryKind::kDevice;
  o.contexts = raw.contexts > 0 ? raw.contexts : o.timing.threads;
  return Ok();
}

}  // namespace

std::variant<Options, int> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"Runs an engine once, or over and over to measure it, and compares its outputs.",
               "engine-run"};
  Options options;
  Raw raw;
  describe_rest(app, options);
  describe_inputs(app, options, raw);
  describe_results(app, options, raw);
  describe_benchmark(app, options, raw);
  if (const auto done = parse_flags(app, argc, argv, kUsage)) return *done;
  if (auto done = complete(app, raw, options); !done.ok()) {
    print_error("engine-run", done.error());
    return done.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
  }
  return options;
}

}  // namespace kiln::run
