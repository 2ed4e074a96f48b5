// MadeUpRequest: inputs for any engine. What a row holds depends on the row's seed alone, so the
// same row can be asked for again in other company.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace kiln::testing {

using Block = std::vector<std::byte>;

// A number in [0, 1) for a place; equal places have equal numbers.
inline double number_at(uint64_t seed, uint64_t place) {
  uint64_t bits = (seed + 1) * 0x9E3779B97F4A7C15u ^ (place + 1) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 31)) * 0x94D049BB133111EBu;
  bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9u;
  return static_cast<double>((bits ^ (bits >> 32)) >> 11) * 0x1.0p-53;
}

// How many elements follow each other in one row of a tensor.
inline int64_t row_elements(const TensorInfo& tensor) {
  int64_t elements = 1;
  for (size_t i = static_cast<size_t>(tensor.batch_axis + 1); i < tensor.type.shape.size(); ++i) {
    elements *= tensor.type.shape[i];
  }
  return elements;
}

struct MadeUpRequest {
  std::vector<TensorInfo> infos;  // of the inputs, with as many rows as asked for
  std::vector<Block> inputs;
  int64_t rows = 0;

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> result;
    for (size_t i = 0; i < infos.size(); ++i) {
      auto* data = const_cast<std::byte*>(inputs[i].data());  // inputs are never written
      result.push_back({infos[i].name, infos[i].type, data});
    }
    return result;
  }
};

// f32 inputs are in [-2, 2), integers and bools 0 or 1. REQUIRES: a seed for each row, at most as
// many rows as the largest bucket has.
inline MadeUpRequest make_up_request(const Engine& engine, std::span<const uint64_t> row_seeds) {
  MadeUpRequest request;
  request.rows = static_cast<int64_t>(row_seeds.size());
  const ShapePointInfo& point = engine.info().points.front();
  for (size_t input = 0; input < point.inputs.size(); ++input) {
    TensorInfo info = point.inputs[input];
    const auto axis = static_cast<size_t>(std::max(info.batch_axis, 0));
    if (info.batch_axis >= 0) {
      info.type.shape[axis] = info.type.shape[axis] / point.batch * request.rows;
    }
    Block block(static_cast<size_t>(info.type.bytes()));
    const int64_t inner = row_elements(info), rows = info.batch_axis < 0 ? 1 : request.rows;
    const auto width = static_cast<size_t>(bits_of(info.type.dtype) / 8);
    for (int64_t i = 0; i < info.type.elements(); ++i) {
      const int64_t row = i / inner % rows, place = i / (inner * rows) * inner + i % inner;
      const uint64_t seed = info.batch_axis < 0 ? 7 : row_seeds[static_cast<size_t>(row)];
      const double number = number_at(seed * 16 + input, static_cast<uint64_t>(place));
      std::byte* at = block.data() + static_cast<size_t>(i) * width;
      if (info.type.dtype == DType::kF32) {
        const auto value = static_cast<float>(4 * number - 2);
        std::memcpy(at, &value, sizeof value);
      } else {
        EXPECT_FALSE(is_float(info.type.dtype)) << "no numbers for " << to_string(info.type);
        *at = std::byte{number < 0.5};  // the lowest byte; the others are 0
      }
    }
    request.infos.push_back(std::move(info));
    request.inputs.push_back(std::move(block));
  }
  return request;
}

// The same, rows seeded first, first + 1, ...
inline MadeUpRequest make_up_request(const Engine& engine, int64_t rows, uint64_t first) {
  std::vector<uint64_t> seeds;
  for (int64_t i = 0; i < rows; ++i) seeds.push_back(first + static_cast<uint64_t>(i));
  return make_up_request(engine, seeds);
}

struct Answer {
  std::vector<TensorInfo> infos;
  std::vector<Block> outputs;
};

// Blocks for the answer to a request, filled with a poison.
inline Result<Answer> make_answer(const Engine& engine, const MadeUpRequest& request) {
  Answer answer;
  KILN_ASSIGN_OR_RETURN(answer.infos, engine.output_types(request.tensors()));
  for (const TensorInfo& info : answer.infos) {
    answer.outputs.emplace_back(static_cast<size_t>(info.type.bytes()), std::byte{0xCB});
  }
  return answer;
}

// Outputs in host memory, through infer().
inline Result<Answer> infer(const Engine& engine, const MadeUpRequest& request) {
  KILN_ASSIGN_OR_RETURN(Answer answer, make_answer(engine, request));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < answer.infos.size(); ++i) {
    outputs.push_back({answer.infos[i].name, answer.infos[i].type, answer.outputs[i].data()});
  }
  KILN_RETURN_IF_ERROR(engine.infer(request.tensors(), outputs));
  return answer;
}

// One row of an output, as the request of that row alone would have it.
inline Block take_row(const TensorInfo& info, const Block& block, int64_t rows, int64_t row) {
  if (info.batch_axis < 0) return block;
  const auto width = static_cast<size_t>(bits_of(info.type.dtype) / 8 * row_elements(info));
  Block taken;
  for (size_t at = static_cast<size_t>(row) * width; at < block.size();
       at += static_cast<size_t>(rows) * width) {
    taken.insert(taken.end(), block.begin() + static_cast<ptrdiff_t>(at),
                 block.begin() + static_cast<ptrdiff_t>(at + width));
  }
  return taken;
}

}  // namespace kiln::testing
