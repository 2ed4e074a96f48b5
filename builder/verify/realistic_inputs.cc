#include "builder/verify/realistic_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "builder/verify/random_inputs.h"

namespace kiln {
namespace {

// The digits in dots, one row a byte: text detectors answer to them.
constexpr int64_t kGlyphWidth = 5, kGlyphHeight = 7;
constexpr std::array<std::array<uint8_t, kGlyphHeight>, 10> kDigits = {{
    {14, 17, 19, 21, 25, 17, 14},
    {4, 12, 4, 4, 4, 4, 14},
    {14, 17, 1, 2, 4, 8, 31},
    {31, 2, 4, 2, 1, 17, 14},
    {2, 6, 10, 18, 31, 2, 2},
    {31, 16, 30, 1, 1, 17, 14},
    {6, 8, 16, 30, 17, 17, 14},
    {31, 1, 2, 4, 8, 8, 8},
    {14, 17, 17, 14, 17, 17, 14},
    {14, 17, 17, 15, 1, 2, 12},
}};

// One plane a channel of each image; strides in elements.
struct Layout {
  int64_t images, channels, height, width;
  int64_t image_stride, channel_stride, row_stride, column_stride;
};

std::optional<Layout> image_layout(const TensorType& type) {
  constexpr int64_t kFewestPixels = 8;  // each way
  if (!is_float(type.dtype) || type.rank() != 4) return std::nullopt;
  const auto plane = [](int64_t height, int64_t width) {
    return height >= kFewestPixels && width >= kFewestPixels;
  };
  const Shape& s = type.shape;
  if (s[1] >= 1 && s[1] <= 4 && plane(s[2], s[3])) {
    return Layout{s[0], s[1], s[2], s[3], s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
  }
  if (s[3] >= 1 && s[3] <= 4 && plane(s[1], s[2])) {
    return Layout{s[0], s[3], s[1], s[2], s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]};
  }
  return std::nullopt;
}

class Painter {
 public:
  Painter(const Layout& layout, uint64_t seed)
      : layout_(layout),
        pixels_(static_cast<size_t>(layout.images * layout.image_stride)),
        random_(seed) {}

  // Sums of a few waves of low frequency, brighter or darker as a whole.
  std::vector<float> smooth() {
    constexpr int kWaves = 6;
    for (int64_t image = 0; image < layout_.images; ++image) {
      for (int64_t channel = 0; channel < layout_.channels; ++channel) {
        const float brightness = normal_(random_);
        paint(image, channel, [&](int64_t, int64_t) { return brightness; });
        for (int wave = 0; wave < kWaves; ++wave) add_wave(image, channel);
      }
    }
    return std::move(pixels_);
  }

  // Dark lines of digits on a light page, all channels alike.
  std::vector<float> page() {
    for (int64_t image = 0; image < layout_.images; ++image) {
      fill(image, 0, layout_.height, 0, layout_.width, 1);
      const int64_t most = std::clamp<int64_t>(layout_.height / (kGlyphHeight + 2), 1, 8);
      const int64_t dot = between((most + 3) / 4, most), line = (kGlyphHeight + 2) * dot;
      for (int64_t top = between(0, 2 * dot); top + line <= layout_.height + 2 * dot; top += line) {
        if (between(0, 3) > 0) write_line(image, top, dot);
      }
    }
    return std::move(pixels_);
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  void paint(int64_t image, int64_t channel, const auto& colour) {
    float* plane = pixels_.data() + image * layout_.image_stride + channel * layout_.channel_stride;
    for (int64_t y = 0; y < layout_.height; ++y) {
      for (int64_t x = 0; x < layout_.width; ++x) {
        plane[y * layout_.row_stride + x * layout_.column_stride] += colour(y, x);
      }
    }
  }

  void add_wave(int64_t image, int64_t channel) {
    const float down = 6 * normal_(random_) / static_cast<float>(layout_.height);
    const float across = 6 * normal_(random_) / static_cast<float>(layout_.width);
    const float phase = 3 * normal_(random_), gain = normal_(random_) / 2;
    paint(image, channel, [&](int64_t y, int64_t x) {
      return gain * std::sin(down * static_cast<float>(y) + across * static_cast<float>(x) + phase);
    });
  }

  void fill(int64_t image, int64_t top, int64_t bottom, int64_t left, int64_t right, float colour) {
    float* first = pixels_.data() + image * layout_.image_stride;
    for (int64_t channel = 0; channel < layout_.channels; ++channel) {
      for (int64_t y = top; y < std::min(bottom, layout_.height); ++y) {
        for (int64_t x = left; x < std::min(right, layout_.width); ++x) {
          first[channel * layout_.channel_stride + y * layout_.row_stride +
                x * layout_.column_stride] = colour;
        }
      }
    }
  }

  // Digits up to a random end of the line, in an ink that may be faint: a network is most easily
  // upset where it is undecided.
  void write_line(int64_t image, int64_t top, int64_t dot) {
    const int64_t end = between(layout_.width / 3, layout_.width),
                  advance = (kGlyphWidth + 1) * dot;
    const float ink = static_cast<float>(between(-10, 8)) / 10;
    for (int64_t left = between(0, 2 * advance); left + advance <= end; left += advance) {
      const auto& glyph = kDigits[static_cast<size_t>(between(0, 9))];
      for (int64_t y = 0; y < kGlyphHeight; ++y) {
        for (int64_t x = 0; x < kGlyphWidth; ++x) {
          if ((glyph[static_cast<size_t>(y)] >> (kGlyphWidth - 1 - x) & 1) == 0) continue;
          fill(image, top + y * dot, top + (y + 1) * dot, left + x * dot, left + (x + 1) * dot,
               ink);
        }
      }
    }
  }

  Layout layout_;
  std::vector<float> pixels_;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
};

Result<HostTensor> image_tensor(const TensorType& type, const Layout& layout, uint64_t seed) {
  Painter painter(layout, seed);
  const std::vector<float> pixels = seed % 3 == 2 ? painter.smooth() : painter.page();
  std::vector<std::byte> bytes(pixels.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), pixels.data(), bytes.size());
  const HostTensor wide{{DType::kF32, type.shape}, SharedBytes::take(std::move(bytes))};
  return convert_tensor(wide, type.dtype);
}

}  // namespace

std::vector<HostTensor> realistic_inputs(const ir::Graph& graph, uint64_t seed,
                                         std::span<const std::optional<HostTensor>> known) {
  std::vector<std::optional<HostTensor>> values(known.begin(), known.end());
  values.resize(graph.inputs().size());
  for (size_t i = 0; i < values.size() && seed % 3 != 1; ++i) {
    const TensorType& type = graph.type(graph.inputs()[i]);
    const auto layout = image_layout(type);
    if (values[i] || !layout) continue;
    auto image = image_tensor(type, *layout, seed);
    if (image.ok()) values[i] = std::move(*image);
  }
  return random_inputs(graph, seed, values);
}

std::vector<std::optional<HostTensor>> fixed_inputs(const ir::Graph& graph,
                                                    const ShapePoint& point) {
  std::vector<std::optional<HostTensor>> known;
  for (ir::ValueId id : graph.inputs()) {
    known.emplace_back();
    const auto fixed = point.fixed_values.find(graph.value(id).name);
    if (fixed == point.fixed_values.end()) continue;
    known.back() = HostTensor{fixed->second.type, SharedBytes::take(fixed->second.bytes)};
  }
  return known;
}

}  // namespace kiln
