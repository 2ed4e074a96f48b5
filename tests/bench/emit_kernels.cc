// kiln_emit_kernels: every schedule of every region of a model, compiled for a GPU that need not be
// here, for compare_kernels.py to time.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/lower_loop.h"
#include "builder/emit/schedule.h"
#include "builder/import/onnx/import.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "formats/onnx/read_model.h"

namespace kiln::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Settings {
  std::filesystem::path model, folder;
  std::string arch = "sm_90a";
  uint32_t multiprocessors = 132;
  bool texts = false;
};

std::string value_name(ir::ValueId id) { return "v" + std::to_string(ir::index_of(id)); }

void write_file(const std::filesystem::path& path, const void* data, size_t bytes) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

class Emitter {
 public:
  explicit Emitter(const Settings& settings) : settings_(settings), cache_(settings.arch) {}

  // {inputs, outputs: [[name, value]], values: {value: {dtype, shape, file?}}, regions: [...]}
  Result<Json> run(const ir::Graph& graph) {
    Json json = {{"inputs", Json::array()},
                 {"outputs", Json::array()},
                 {"values", Json::object()},
                 {"regions", Json::array()}};
    for (const ir::ValueId id : graph.inputs()) {
      json["inputs"].push_back({graph.value(id).name, value_name(id)});
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      json["outputs"].push_back({graph.output_name(i), value_name(graph.outputs()[i])});
    }
    for (const ir::NodeId id : graph.topological_order()) {
      const ir::Node& node = graph.node(id);
      for (const ir::ValueId value : node.inputs) describe(graph, value, json["values"]);
      for (const ir::ValueId value : node.outputs) describe(graph, value, json["values"]);
      KILN_ASSIGN_OR_RETURN(Json region, emit(node));
      json["regions"].push_back(std::move(region));
    }
    return json;
  }

 private:
  void describe(const ir::Graph& graph, ir::ValueId id, Json& values) const {
    const ir::Value& value = graph.value(id);
    Json& json = values[value_name(id)];
    json = {{"dtype", std::string(to_string(value.type.dtype))}, {"shape", value.type.shape}};
    if (!value.constant) return;
    const std::string file = value_name(id) + ".bin";
    write_file(settings_.folder / file, value.constant->data(), value.constant->size());
    json["file"] = file;
  }

  Result<Json> emit(const ir::Node& node) {
    const auto& region = std::get<ir::Region>(node.op);
    Json json = {{"name", node.name}, {"alias", is_alias(region)}};
    for (const ir::ValueId id : node.inputs) json["inputs"].push_back(value_name(id));
    for (const ir::ValueId id : node.outputs) json["outputs"].push_back(value_name(id));
    json["candidates"] = Json::array();
    if (is_alias(region)) return json;
    KILN_ASSIGN_OR_RETURN(const loop::LoopKernel kernel, lower_to_loop(*region.body));
    json["kernel"] = loop::to_text(kernel);
    const auto schedules =
        codegen::cuda_schedules(kernel, {.multiprocessors = settings_.multiprocessors});
    std::vector<codegen::CudaSource> sources;
    std::vector<std::string> texts;
    for (const codegen::CudaSchedule& schedule : schedules) {
      KILN_ASSIGN_OR_RETURN(sources.emplace_back(), codegen::emit_cuda(kernel, schedule));
      texts.push_back(sources.back().text);
    }
    auto cubins = cache_.compile_all(texts, static_cast<int>(std::thread::hardware_concurrency()));
    for (size_t i = 0; i < schedules.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin, std::move(cubins[i]));
      json["candidates"].push_back(candidate(schedules[i], sources[i], cubin));
    }
    return json;
  }

  Json candidate(const codegen::CudaSchedule& schedule, const codegen::CudaSource& source,
                 const codegen::Cubin& cubin) {
    const std::string name = "k" + std::to_string(count_++);
    write_file(settings_.folder / (name + ".cubin"), cubin.bytes.data(), cubin.bytes.size());
    if (settings_.texts) {
      write_file(settings_.folder / (name + ".cu"), source.text.data(), source.text.size());
    }
    Json json = {{"schedule", codegen::to_text(schedule)},
                 {"cubin", name + ".cubin"},
                 {"workspace_bytes", source.workspace_bytes},
                 {"registers", cubin.registers},
                 {"spilled_bytes", cubin.spilled_bytes},
                 {"shared_bytes", cubin.shared_bytes},
                 {"launches", Json::array()}};
    for (const codegen::CudaLaunch& launch : source.launches) {
      json["launches"].push_back(
          {{"entry", launch.entry}, {"blocks", launch.blocks}, {"threads", launch.threads}});
    }
    return json;
  }

  const Settings& settings_;
  codegen::CubinCache cache_;
  int count_ = 0;
};

// The shapes that the model itself declares.
ShapePoint declared_point(const onnx::Model& model) {
  ShapePoint point;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (!input.shape) continue;
    Shape& shape = point.inputs[input.name];
    for (const onnx::Dim& dim : *input.shape) shape.push_back(dim.extent.value_or(1));
  }
  return point;
}

Result<> run(const Settings& settings) {
  std::filesystem::create_directories(settings.folder);
  KILN_ASSIGN_OR_RETURN(const onnx::Model model, onnx::read_model(settings.model));
  KILN_ASSIGN_OR_RETURN(auto imported, onnx_import::import_onnx(model, declared_point(model)));
  PassContext context;
  context.options.library_layouts = true;
  KILN_RETURN_IF_ERROR(run_passes(imported.graph, default_pipeline(), context));
  KILN_ASSIGN_OR_RETURN(const Json json, Emitter(settings).run(imported.graph));
  const std::string text = json.dump(1);
  write_file(settings.folder / "kernels.json", text.data(), text.size());
  return Ok();
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  kiln::bench::Settings settings;
  CLI::App app("Writes a model's generated kernels, under every schedule, as cubins");
  app.add_option("model", settings.model, "An .onnx whose inputs have concrete shapes")->required();
  app.add_option("folder", settings.folder, "Where kernels.json and the cubins go")->required();
  app.add_option("--arch", settings.arch, "Of the GPU")->capture_default_str();
  app.add_option("--multiprocessors", settings.multiprocessors, "Of the GPU")
      ->capture_default_str();
  app.add_flag("--texts", settings.texts, "Write the kernels' sources too");
  CLI11_PARSE(app, argc, argv);
  const auto done = kiln::bench::run(settings);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
