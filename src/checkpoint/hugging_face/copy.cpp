#include "checkpoint/hugging_face/copy.h"

#include <algorithm>
#include <vector>

#include "checkpoint/slice.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

// A row of a box: where its elements begin in the box that holds them, and its number among the rows of the tensor's box.
struct Row {
  int64_t offset;
  int64_t number;
};

// The row-major place of `index` (all dims but the last) in a box.
int64_t row_number(const spec::Box& box, const std::vector<int64_t>& index) {
  int64_t number = 0;
  for (size_t dim = 0; dim + 1 < box.extent.size(); ++dim) {
    number = number * box.extent[dim] + (index[dim] - box.offset[dim]);
  }
  return number;
}

// Rows of `common`, a part of `held` and of `tensor`, in order.
std::vector<Row> rows_of(const spec::Box& common, const spec::Box& held, const spec::Box& tensor) {
  const size_t dims = common.extent.size();
  std::vector<int64_t> index = common.offset;
  std::vector<Row> rows;
  rows.reserve(static_cast<size_t>(common.elements() / std::max<int64_t>(1, common.extent[dims - 1])));
  while (true) {
    const int64_t first = common.offset[dims - 1] - held.offset[dims - 1];
    rows.push_back({row_number(held, index) * held.extent[dims - 1] + first, row_number(tensor, index)});
    size_t dim = dims - 1;
    while (dim > 0 && ++index[dim - 1] == common.offset[dim - 1] + common.extent[dim - 1]) {
      index[dim - 1] = common.offset[dim - 1];
      --dim;
    }
    if (dim == 0) return rows;
  }
}

}  // namespace

std::optional<FloatFormat> float_format(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return FloatFormat::float32;
    case DType::BF16:
      return FloatFormat::bfloat16;
    case DType::F16:
      return FloatFormat::float16;
    default:
      return std::nullopt;
  }
}

void copy_from_theirs(const spec::HuggingFaceTensor& tensor, FloatFormat format, std::span<const std::byte> bytes,
                      const spec::Box& box, std::span<float> destination) {
  const auto common = intersect(box, tensor.box);
  if (!common || common->elements() == 0) return;
  const int64_t size = float_bytes(format);
  RIDGELINE_ASSERT(static_cast<int64_t>(bytes.size()) >= tensor.box.elements() * size);
  const std::vector<Row> rows = rows_of(*common, box, tensor.box);
  const int64_t columns = common->extent.back(), all_columns = tensor.box.extent.back();
  const int64_t first = common->offset.back() - tensor.box.offset.back();
  if (!tensor.transposed) {
    for (const Row& row : rows) {
      const std::byte* from = bytes.data() + (row.number * all_columns + first) * size;
      decode_floats(format, from, destination.data() + row.offset, columns);
    }
    return;
  }
  // A row of theirs is a column of ours: it is decoded as far as our rows reach and dealt out.
  const int64_t all_rows = tensor.box.elements() / all_columns;
  const int64_t from_row = rows.front().number, count = rows.back().number + 1 - from_row;
  std::vector<float> line(static_cast<size_t>(count));
  for (int64_t column = 0; column < columns; ++column) {
    decode_floats(format, bytes.data() + ((first + column) * all_rows + from_row) * size, line.data(), count);
    for (const Row& row : rows) destination[row.offset + column] = line[row.number - from_row];
  }
}

void copy_to_theirs(const spec::HuggingFaceTensor& tensor, FloatFormat format, std::span<const float> values,
                    std::span<std::byte> bytes) {
  const int64_t size = float_bytes(format), elements = tensor.box.elements();
  RIDGELINE_ASSERT(static_cast<int64_t>(bytes.size()) == elements * size);
  RIDGELINE_ASSERT(static_cast<int64_t>(values.size()) == elements);
  if (!tensor.transposed) return encode_floats(format, values.data(), bytes.data(), elements);
  const int64_t columns = tensor.box.extent.back(), rows = elements / columns;
  std::vector<float> line(static_cast<size_t>(rows));
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) line[row] = values[row * columns + column];
    encode_floats(format, line.data(), bytes.data() + column * rows * size, rows);
  }
}

}  // namespace ridgeline::checkpoint
