#include "apps/engine-inspect/memory_picture.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "apps/engine-inspect/arena_buffers.h"
#include "apps/engine-inspect/step_text.h"
#include "formats/report/quantity_text.h"

namespace kiln::inspect {
namespace {

constexpr size_t kMostColumns = 80, kMostRows = 16, kWidestStep = 6, kLegend = 12;

char letter_of(size_t buffer) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return kLetters[buffer % kLetters.size()];
}

struct Grid {
  size_t steps, columns, rows;
  uint64_t arena;

  // Steps and addresses of a cell; both ranges hold at least one.
  std::pair<size_t, size_t> steps_of(size_t column) const {
    const size_t begin = column * steps / columns;
    return {begin, std::max(begin + 1, (column + 1) * steps / columns)};
  }
  std::pair<double, double> addresses_of(size_t row) const {
    const double each = static_cast<double>(arena) / static_cast<double>(rows);
    return {each * static_cast<double>(row), each * static_cast<double>(row + 1)};
  }
};

Grid grid_of(const plan::ShapePoint& point) {
  const size_t steps = point.steps.size();
  const size_t columns = std::min(kMostColumns, steps * kWidestStep);
  constexpr uint64_t kLeastRowBytes = 64;
  const auto rows = std::clamp<uint64_t>(point.arena_bytes / kLeastRowBytes, 1, kMostRows);
  return {steps, columns, static_cast<size_t>(rows), point.arena_bytes};
}

// A cell shows the buffer that fills most of it.
std::vector<std::string> draw(const Grid& grid, const std::vector<ArenaBuffer>& buffers) {
  std::vector<std::string> picture(grid.rows, std::string(grid.columns, '.'));
  std::vector<double> best(grid.rows * grid.columns, 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& buffer = buffers[i];
    const auto begin = static_cast<double>(buffer.offset);
    const double end = begin + static_cast<double>(buffer.bytes);
    for (size_t column = 0; column < grid.columns; ++column) {
      const auto [first, last] = grid.steps_of(column);
      const size_t from = std::max(first, buffer.first_step);
      const size_t to = std::min(last, buffer.last_step + 1);
      if (from >= to) continue;
      for (size_t row = 0; row < grid.rows; ++row) {
        const auto [low, high] = grid.addresses_of(row);
        const double height = std::min(high, end) - std::max(low, begin);
        const double area = height * static_cast<double>(to - from);
        double& most = best[row * grid.columns + column];
        if (area <= most) continue;
        most = area;
        picture[row][column] = letter_of(i);
      }
    }
  }
  return picture;
}

// Tenths of the arena that are live; 9 from 90 % on, * when full.
std::string live_line(const Grid& grid, const Occupancy& live) {
  std::string line;
  for (size_t column = 0; column < grid.columns; ++column) {
    const auto [first, last] = grid.steps_of(column);
    const uint64_t most = *std::max_element(live.live_bytes.begin() + static_cast<ptrdiff_t>(first),
                                            live.live_bytes.begin() + static_cast<ptrdiff_t>(last));
    const double share = static_cast<double>(most) / static_cast<double>(grid.arena);
    line += most >= grid.arena ? '*' : static_cast<char>('0' + std::min(9, int(share * 10)));
  }
  return line;
}

std::string legend(const plan::ShapePoint& point, const std::vector<ArenaBuffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::string text;
  for (size_t i = 0; i < std::min(kLegend, order.size()); ++i) {
    const ArenaBuffer& buffer = buffers[order[i]];
    char line[120];
    std::snprintf(line, sizeof line, "  %c  %10s at %-12llu steps %4zu to %-4zu %s",
                  letter_of(order[i]), report::bytes_text(buffer.bytes).c_str(),
                  static_cast<unsigned long long>(buffer.offset), buffer.first_step,
                  buffer.last_step, buffer.workspace ? "workspace of " : "from ");
    text += line + region_name(point, buffer.first_step) + "\n";
  }
  if (order.size() > kLegend) {
    text += "  and " + std::to_string(order.size() - kLegend) + " smaller ones\n";
  }
  return text;
}

std::string head(const plan::ShapePoint& point, const Occupancy& live) {
  std::string text =
      "\nmemory of point " + point.name + ": arena " + report::bytes_text(point.arena_bytes);
  if (point.arena_lower_bound_bytes > 0) {
    char ratio[64];
    std::snprintf(ratio, sizeof ratio, ", %.3f times its lower bound of ",
                  static_cast<double>(point.arena_bytes) /
                      static_cast<double>(point.arena_lower_bound_bytes));
    text += ratio + report::bytes_text(point.arena_lower_bound_bytes);
  }
  if (live.live_bytes.empty()) return text + "\n";
  return text + "\n  most bytes live at step " + std::to_string(live.peak_step) + " (" +
         region_name(point, live.peak_step) +
         "): " + report::bytes_text(live.live_bytes[live.peak_step]) + "\n";
}

}  // namespace

std::string memory_picture(const plan::ShapePoint& point) {
  const std::vector<ArenaBuffer> buffers = arena_buffers(point);
  const Occupancy live = occupancy(buffers, point.steps.size());
  std::string text = head(point, live);
  if (buffers.empty() || point.arena_bytes == 0) return text;
  const Grid grid = grid_of(point);
  const std::vector<std::string> picture = draw(grid, buffers);
  for (size_t row = 0; row < grid.rows; ++row) {
    char label[40];
    std::snprintf(label, sizeof label, "%14.0f ", grid.addresses_of(row).first);
    text += label + picture[row] + "\n";
  }
  return text + "   live tenths " + live_line(grid, live) + "\n" + legend(point, buffers);
}

}  // namespace kiln::inspect
