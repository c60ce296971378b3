#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_set>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_kind.h"
#include "core/error.h"
#include "core/json_input.h"
#include "core/text.h"

namespace ridgeline::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the safetensors package refuses more
constexpr const char* kMetadataKey = "__metadata__";

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (int byte = 7; byte >= 0; --byte) value = value << 8 | std::to_integer<uint64_t>(bytes[byte]);
  return value;
}

json header_json(const SafetensorsHeader& header) {
  json object = json::object();
  if (!header.metadata.empty()) object[kMetadataKey] = header.metadata;
  for (const TensorEntry& tensor : header.tensors) {
    object[tensor.name] = {
        {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  return object;
}

std::string dump_padded(const SafetensorsHeader& header) {
  std::string text;
  try {
    text = header_json(header).dump();
  } catch (const json::exception& error) {
    throw InputError("a tensor name or metadata value of a safetensors file is not UTF-8: {}", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeader) {
    throw InputError("a safetensors header of {} tensors takes {}, the format allows 100 MB; spread them over files",
                     header.tensors.size(), format_bytes(static_cast<double>(text.size())));
  }
  return text;
}

TensorEntry decode_tensor(const std::string& name, const json& value, uint64_t data_size, const std::string& file) {
  const std::string where = fmt::format("{}: tensor \"{}\"", file, name);
  TensorEntry tensor;
  tensor.name = name;
  TensorKind kind = json_tensor_kind(value, where);
  tensor.dtype = kind.dtype;
  tensor.shape = std::move(kind.shape);
  const std::vector<int64_t> offsets = json_counts(value, "data_offsets", where);
  if (offsets.size() != 2) throw InputError("{}: {} data_offsets, expected begin and end", where, offsets.size());
  tensor.begin = static_cast<uint64_t>(offsets[0]);
  tensor.end = static_cast<uint64_t>(offsets[1]);
  const std::optional<int64_t> bytes = checked_bytes(tensor.shape, tensor.dtype);
  if (tensor.begin > tensor.end || tensor.end > data_size) {
    throw InputError("{}: data_offsets {}..{}, expected a range inside the file's {} bytes of data", where,
                     tensor.begin, tensor.end, data_size);
  }
  if (tensor.end - tensor.begin != static_cast<uint64_t>(*bytes)) {
    throw InputError("{}: data_offsets span {} bytes, expected {} for {} {}", where, tensor.end - tensor.begin, *bytes,
                     json_string(value, "dtype", where), shape_text(tensor.shape));
  }
  return tensor;
}

Metadata decode_metadata(const json& value, const std::string& where) {
  if (!value.is_object()) throw InputError("{}: __metadata__ is not an object of strings", where);
  Metadata metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      throw InputError("{}: __metadata__ \"{}\" is {}, expected a string", where, key, text.type_name());
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

// The tensors, sorted by offset, must tile the data: a hole could hide bytes that no one checks.
void check_tiling(const std::vector<TensorEntry>& tensors, uint64_t data_size, const std::string& where) {
  uint64_t end = 0;
  const std::string* previous = nullptr;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != end) {
      throw InputError("{}: tensor \"{}\" begins at byte {} of the data, expected {}, where {} ends: {}", where,
                       tensor.name, tensor.begin, end, previous ? "\"" + *previous + "\"" : "the header",
                       tensor.begin < end ? "they overlap" : "there is a hole between them");
    }
    end = tensor.end;
    previous = &tensor.name;
  }
  if (end != data_size) {
    throw InputError("{}: {} bytes of data, but the tensors take {}; the file is damaged or cut short", where,
                     data_size, end);
  }
}

}  // namespace

SafetensorsHeader plan_safetensors(std::vector<TensorEntry> tensors, Metadata metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& left, const TensorEntry& right) {
    const int64_t left_size = element_size(left.dtype);
    const int64_t right_size = element_size(right.dtype);
    return std::tie(right_size, left.name) < std::tie(left_size, right.name);
  });
  std::unordered_set<std::string> names;
  uint64_t end = 0;
  for (TensorEntry& tensor : tensors) {
    if (tensor.name == kMetadataKey)
      throw InputError("a tensor cannot be called {}: the format reserves it", kMetadataKey);
    if (!names.insert(tensor.name).second) throw InputError("tensor \"{}\" is written twice", tensor.name);
    const std::optional<int64_t> bytes = checked_bytes(tensor.shape, tensor.dtype);
    if (!bytes) {
      throw InputError("tensor \"{}\": shape {} is negative or too large", tensor.name, shape_text(tensor.shape));
    }
    tensor.begin = end;
    end += static_cast<uint64_t>(*bytes);
    // Readers take offsets as signed numbers, and a header must still fit before the data.
    if (end > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - 2 * kMaxHeader) {
      throw InputError("tensor \"{}\": the tensors of one file take more than 2^63 bytes", tensor.name);
    }
    tensor.end = end;
  }
  SafetensorsHeader header{std::move(metadata), std::move(tensors), 0, 0};
  header.data_start = 8 + dump_padded(header).size();
  header.file_size = header.data_start + end;
  return header;
}

std::string encode_header(const SafetensorsHeader& header) {
  const std::string text = dump_padded(header);
  std::string bytes(8, '\0');
  for (int byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(text.size() >> (8 * byte) & 0xff);
  return bytes + text;
}

SafetensorsHeader decode_header(std::span<const std::byte> head, uint64_t file_size, const std::string& where) {
  if (file_size < 8 || head.size() < 8) {
    throw InputError("{}: {} bytes, too short for a safetensors file", where, file_size);
  }
  const uint64_t length = little_endian(head.first(8));
  if (length > kMaxHeader || length > file_size - 8 || length > head.size() - 8) {
    throw InputError(
        "{}: a header of {} bytes is announced in a file of {}, expected at most {}; not a safetensors file, "
        "or cut short",
        where, length, file_size, std::min(kMaxHeader, file_size - 8));
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + 8, length);
  const json object = parse_json(text, where, 4);
  if (!object.is_object()) throw InputError("{}: the header is not a JSON object", where);

  SafetensorsHeader header;
  header.data_start = 8 + length;
  header.file_size = file_size;
  const uint64_t data_size = file_size - header.data_start;
  for (const auto& [name, value] : object.items()) {
    if (name == kMetadataKey) {
      header.metadata = decode_metadata(value, where);
    } else {
      header.tensors.push_back(decode_tensor(name, value, data_size, where));
    }
  }
  // Empty tensors share their offset with the next one and have to stand before it.
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& left, const TensorEntry& right) {
    return std::tie(left.begin, left.end) < std::tie(right.begin, right.end);
  });
  check_tiling(header.tensors, data_size, where);
  return header;
}

}  // namespace ridgeline::checkpoint
