// engine-build: an ONNX model in, a verified engine file out.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>

#include "apps/engine-build/progress_line.h"
#include "apps/parse_flags.h"
#include "apps/print_out.h"
#include "builder/builder.h"
#include "builder/fixed_values.h"
#include "builder/shape_flags.h"
#include "formats/version.h"

namespace {

// As the help text lists them.
constexpr int kOk = 0, kFailed = 1, kUsage = 2;

constexpr const char* kFooter = R"(
EXAMPLES
  engine-build --onnx m.onnx -o m.engine --max-batch 64
  engine-build --onnx m.onnx -o m.engine --batches 1,8 --shapes ids:Bx128,mask:Bx128
  engine-build --onnx m.onnx -o m.engine --fp16 --verify-data images.npz --timing-cache m.timing
  engine-build --onnx m.onnx -o m.engine --target sm_90 --timing-cache h200.timing
  engine-build --onnx m.onnx -o m.engine --report m.html
  engine-build --onnx m.onnx --verify-engine m.engine
  engine-build --onnx m.onnx --check             what in the model is not supported

EXIT CODES
  0 done   1 failed: no engine was written but where the error says so   2 bad command line)";

struct Flags {
  std::string model, target = "auto", verify_engine;
  std::optional<std::string> batches;
  std::vector<std::string> shapes, shape_values;
  bool fp32 = false, tf32 = false, fp16 = false, bf16 = false, no_verify = false;
  kiln::BuildOptions options;
};

void describe(CLI::App& app, Flags& flags) {
  kiln::BuildOptions& o = flags.options;
  app.set_version_flag("--version", kiln::kVersion);
  app.footer(kFooter);
  app.add_option("--onnx", flags.model, "The model")->required();
  app.add_option("-o,--output", o.output, "The engine file to write");
  app.add_option("--target", flags.target,
                 "auto, host or cuda; or a GPU that is elsewhere, sm_90 or its name, as the timing "
                 "cache of a build there describes it")
      ->capture_default_str();
  auto* precision = app.add_option_group("precision", "What values are kept in");
  precision->add_flag("--fp32", flags.fp32, "32-bit floats (the default)");
  precision->add_flag("--tf32", flags.tf32,
                      "32-bit floats; the GPU may round what it multiplies to TF32");
  precision->add_flag("--fp16", flags.fp16, "16-bit floats; what would harm the outputs stays f32");
  precision->add_flag("--bf16", flags.bf16, "bfloat16; what would harm the outputs stays f32");
  precision->require_option(0, 1);
  app.add_flag("--io-fp16", o.io_fp16, "Float inputs and outputs become f16 too");
  auto* max_batch = app.add_option("--max-batch", o.max_batch, "Buckets 1, 2, 4, ... up to this");
  max_batch->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--batches", flags.batches, "These buckets instead, such as 1,8,48")
      ->excludes(max_batch);
  app.add_option(
      "--shapes", flags.shapes,
      "Extents of inputs, B marking the batch: ids:Bx128,mask:Bx128. Several named sets: "
      "short=ids:Bx32 long=ids:Bx512");
  app.add_option(
      "--shape-values", flags.shape_values,
      "An .npz with the values of inputs that shapes depend on; NAME=FILE for a named set");
  app.add_option("--timing-cache", o.timing_cache, "Measured tactics, read and written back");
  app.add_option("--report", o.report,
                 "Write the report as JSON; named .html, as a page for a browser");
  app.add_option("--verify-data", o.verify_data,
                 "Typical inputs to choose precision and verify with: .npz or a folder");
  app.add_flag("--no-verify", flags.no_verify,
               "Do not compare the engine with the reference; it is stamped unverified");
  app.add_option(
      "--verify-engine", flags.verify_engine,
      "Build nothing: compare this engine with the model, on the device that it was built "
      "for, and stamp it verified");
  app.add_option("--plugin", o.plugins, "A plugin library");
  app.add_option("--disable-pass", o.disabled_passes, "Leave out this pass");
  app.add_option("--disable-tactic", o.disabled_tactics,
                 "Do without this provider of tactics, such as cublaslt");
  app.add_option("--stop-after", o.stop_after, "Stop after so many changes by passes; bisects")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_flag("--explain", o.explain, "Show every candidate, refusal and near miss");
  app.add_flag("--check", o.check_only, "List every unsupported node and build nothing");
  app.add_flag("--dry-run", o.dry_run, "Plan and print memory, write no engine");
  app.add_flag("-q,--quiet", o.quiet, "Print errors only");
}

// A flag that would do nothing is a mistake of whoever gave it. The options of a whole build may
// stay beside --check and --dry-run, but not what asks for something that those do not make.
kiln::Result<> check_combinations(const CLI::App& app) {
  const auto refuse = [&](const char* beside, std::initializer_list<const char*> flags,
                          const char* why) -> kiln::Result<> {
    if (app.count(beside) == 0) return kiln::Ok();
    for (const char* flag : flags) {
      if (app.count(flag) == 0) continue;
      return kiln::Error{kiln::ErrorCode::kInvalidArgument,
                         std::string(flag) + " means nothing beside " + beside + ", which " + why};
    }
    return kiln::Ok();
  };
  KILN_RETURN_IF_ERROR(
      refuse("--verify-engine",
             {"--check",       "--dry-run",   "--output",     "--report",       "--timing-cache",
              "--verify-data", "--no-verify", "--stop-after", "--disable-pass", "--disable-tactic",
              "--fp32",        "--tf32",      "--fp16",       "--bf16",         "--io-fp16",
              "--max-batch",   "--batches",   "--shapes",     "--shape-values", "--target"},
             "builds nothing and stamps the engine alone"));
  return refuse("--check", {"--report", "--explain", "--dry-run"},
                "plans nothing and prints what is not supported");
}

kiln::Result<> complete(const CLI::App& app, Flags& flags) {
  KILN_RETURN_IF_ERROR(check_combinations(app));
  kiln::BuildOptions& o = flags.options;
  o.verify = !flags.no_verify;
  o.target = flags.target == "auto"   ? kiln::BuildTarget::kAuto
             : flags.target == "host" ? kiln::BuildTarget::kHost
                                      : kiln::BuildTarget::kCuda;
  if (flags.tf32) o.precision = kiln::Precision::kTf32;
  const bool here = flags.target == "auto" || flags.target == "host" || flags.target == "cuda";
  if (!here) o.target_device = flags.target;
  if (flags.fp16) o.precision = kiln::Precision::kFp16;
  if (flags.bf16) o.precision = kiln::Precision::kBf16;
  if (flags.batches) {
    KILN_ASSIGN_OR_RETURN(o.batches, kiln::parse_batches(*flags.batches));
  }
  for (const std::string& text : flags.shapes) {
    KILN_ASSIGN_OR_RETURN(auto set, kiln::parse_shapes(text));
    if (!o.shape_sets.emplace(set.name, std::move(set.shapes)).second) {
      return kiln::Error{kiln::ErrorCode::kInvalidArgument, "--shapes: found the set '" + set.name +
                                                                "' twice, expected one name each"};
    }
  }
  for (const std::string& text : flags.shape_values) {
    const size_t equals = text.find('=');
    const bool named = equals != std::string::npos;
    const std::string set = named ? text.substr(0, equals) : "";
    const std::string file = named ? text.substr(equals + 1) : text;
    KILN_ASSIGN_OR_RETURN(o.fixed_values[set], kiln::read_fixed_values(file));
    o.sources.emplace_back(file);
  }
  return kiln::Ok();
}

std::string check_text(const kiln::BuildResult& result) {
  std::string text;
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  for (const auto& node : result.unsupported) {
    text += node.node + " (" + node.op_type + "): " + node.reason + "\n";
  }
  return result.unsupported.empty() ? text + "every node is supported\n" : text;
}

int report_failure(const kiln::Error& error) {
  kiln::print_error("engine-build", error);
  return error.code == kiln::ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

int print_result(const kiln::BuildResult& result, const kiln::BuildOptions& options) {
  std::string text;
  if (options.check_only) {
    text = check_text(result);
  } else if (!options.quiet) {
    text = result.report_text;
    if (!result.engine.empty()) text += "wrote " + result.engine.string() + "\n";
  }
  const bool supported = !options.check_only || result.unsupported.empty();
  return kiln::print_out("engine-build", text) && supported ? kOk : kFailed;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Builds a model into a verified engine.", "engine-build"};
  Flags flags;
  describe(app, flags);
  if (const auto done = kiln::parse_flags(app, argc, argv, kUsage)) return *done;
  if (auto done = complete(app, flags); !done.ok()) return report_failure(done.error());
  ProgressLine line(flags.options.quiet);
  const auto show = [&](const kiln::BuildProgress& progress) { line.show(progress); };
  auto result = flags.verify_engine.empty()
                    ? kiln::build(flags.model, flags.options, show)
                    : kiln::verify_engine(flags.model, flags.verify_engine, flags.options, show);
  line.finish();
  if (!result.ok()) return report_failure(result.error());
  return print_result(*result, flags.options);
} catch (const std::exception& error) {  // out of memory, in the program itself
  std::fprintf(stderr, "engine-build: error: %s\n", error.what());
  return kFailed;
}
