#include "engine/host/plain/strided_copy.h"

#include <cstring>

#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"

namespace kiln::host {
namespace {

struct Axis {
  int64_t extent, from, to;
};

// Drops axes of extent 1 and joins neighbours that are one axis in both views.
std::vector<Axis> coalesce(const Shape& extents, const Strided& source, const Strided& target) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Axis axis{extents[i], source.strides[i], target.strides[i]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().from == axis.from * axis.extent &&
        axes.back().to == axis.to * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.from, axis.to};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

template <class T>
void copy_row(const T* from, T* to, const Axis& row) {
  if (row.from == 1 && row.to == 1) {
    std::memcpy(to, from, row.extent * sizeof(T));
  } else if (row.from == 0 && row.to == 1) {
    std::fill_n(to, row.extent, *from);
  } else {
    for (int64_t i = 0; i < row.extent; ++i) to[i * row.to] = from[i * row.from];
  }
}

// Two innermost axes in square tiles, so that a transpose uses every cache line it loads.
template <class T>
void copy_tiled(const T* from, T* to, const Axis& outer, const Axis& inner) {
  constexpr int64_t kTile = 16;
  for (int64_t i = 0; i < outer.extent; i += kTile) {
    for (int64_t j = 0; j < inner.extent; j += kTile) {
      const int64_t rows = std::min(kTile, outer.extent - i);
      const Axis row{std::min(kTile, inner.extent - j), inner.from, inner.to};
      for (int64_t r = i; r < i + rows; ++r) {
        copy_row(from + r * outer.from + j * inner.from, to + r * outer.to + j * inner.to, row);
      }
    }
  }
}

template <class T>
void copy_axes(const std::vector<Axis>& axes, const T* from, T* to) {
  const size_t rank = axes.size();
  const bool tiled = rank >= 2 && axes[rank - 1].from != 1 && axes[rank - 2].from == 1;
  const size_t outer_rank = rank - (tiled ? 2 : 1);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < rank; ++i) (i < outer_rank ? outer : inner) *= axes[i].extent;
  parallel_for(outer, inner, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const T* source = from;
      T* target = to;
      int64_t rest = index;
      for (size_t i = outer_rank; i-- > 0;) {
        const int64_t at = rest % axes[i].extent;
        rest /= axes[i].extent;
        source += at * axes[i].from;
        target += at * axes[i].to;
      }
      if (tiled)
        copy_tiled(source, target, axes[rank - 2], axes[rank - 1]);
      else
        copy_row(source, target, axes[rank - 1]);
    }
  });
}

}  // namespace

void copy_strided(const Shape& extents, const void* from, const Strided& source, void* to,
                  const Strided& target, int64_t element_bytes) {
  if (element_count(extents) == 0) return;
  const std::vector<Axis> axes = coalesce(extents, source, target);
  visit_size(element_bytes, [&]<class T>() {
    copy_axes(axes, static_cast<const T*>(from) + source.offset,
              static_cast<T*>(to) + target.offset);
  });
}

std::vector<int64_t> broadcast_strides(const Shape& shape, size_t rank) {
  std::vector<int64_t> strides(rank, 0);
  const Shape dense = row_major_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) strides[rank - shape.size() + i] = dense[i];
  }
  return strides;
}

}  // namespace kiln::host
