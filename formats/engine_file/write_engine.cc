#include "formats/engine_file/write_engine.h"

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/container.h"
#include "formats/engine_file/encode_plan.h"
#include "formats/file/atomic_file.h"

namespace kiln {
namespace {

using engine_file::Bytes;

// The pieces of a file in order, padding included; views of itself and of the plan.
struct Pieces {
  engine_file::EncodedPlan encoded;
  engine_file::Layout layout;
  std::vector<Bytes> pieces;
};

constexpr std::array<std::byte, 4096> kPadding = {};

Result<Pieces> cut(const plan::Plan& plan) {
  Pieces cut;
  KILN_ASSIGN_OR_RETURN(cut.encoded, engine_file::encode_plan(plan));
  const engine_file::Sections sections = {cut.encoded.plan, cut.encoded.blobs,
                                          std::as_bytes(std::span<const char>(plan.report_json)),
                                          plan.weights.bytes};
  cut.layout = engine_file::lay_out(sections);
  uint64_t end = engine_file::kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    cut.pieces.push_back(Bytes(kPadding).first(cut.layout.offsets[i] - end));
    cut.pieces.push_back(sections[i]);
    end = cut.layout.offsets[i] + sections[i].size();
  }
  return cut;
}

}  // namespace

Result<std::vector<std::byte>> to_bytes(const plan::Plan& plan) {
  KILN_ASSIGN_OR_RETURN(const Pieces cut_plan, cut(plan));
  std::vector<std::byte> bytes(cut_plan.layout.head.begin(), cut_plan.layout.head.end());
  for (Bytes piece : cut_plan.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

Result<> write_engine(const plan::Plan& plan, const std::filesystem::path& path) {
  auto checked = plan::check_plan(plan);
  if (!checked) return std::move(checked).error().context("write '" + path.string() + "'");
  KILN_ASSIGN_OR_RETURN(Pieces cut_plan, cut(plan));
  cut_plan.pieces.insert(cut_plan.pieces.begin(), Bytes(cut_plan.layout.head));
  return write_file_atomically(path, cut_plan.pieces);
}

}  // namespace kiln
