#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/checksum.h"
#include "checkpoint/tensor_kind.h"
#include "core/error.h"
#include "core/json_input.h"
#include "core/text_file.h"

namespace ridgeline::checkpoint {
namespace {

using nlohmann::json;

// A manifest of 100,000 pieces takes about 15 MB.
constexpr size_t kMaxManifest = size_t{1} << 30;

uint64_t checksum_of_json(const json& document) {
  const std::string text = document.dump();
  return checksum_of(std::as_bytes(std::span(text)));
}

json encode_tensor(const TensorRecord& tensor) {
  json pieces = json::array();
  for (const Piece& piece : tensor.pieces) {
    pieces.push_back({{"file", piece.file},
                      {"key", piece.key},
                      {"offset", piece.slice.box.offset},
                      {"extent", piece.slice.box.extent},
                      {"range", {piece.slice.range.begin, piece.slice.range.end}}});
  }
  return {{"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}, {"pieces", std::move(pieces)}};
}

FileRecord decode_file(const json& value, const std::string& where) {
  FileRecord file;
  file.name = json_string(value, "name", where);
  // A plain name: a path could read any file of the machine into the model.
  if (file.name.empty() || file.name.front() == '.' ||
      file.name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    throw InputError("{}: file name \"{}\", expected a plain name inside the checkpoint's folder", where, file.name);
  }
  file.size = static_cast<uint64_t>(json_count(value, "size", where));
  const std::string text = json_string(value, "xxh3", where);
  const std::optional<uint64_t> checksum = parse_checksum(text);
  if (!checksum) throw InputError("{}: xxh3 \"{}\", expected 16 hexadecimal digits", where, text);
  file.checksum = *checksum;
  return file;
}

Piece decode_piece(const json& value, const TensorRecord& tensor, size_t files, const std::string& where) {
  Piece piece;
  piece.file = json_count(value, "file", where);
  if (piece.file >= static_cast<int64_t>(files)) {
    throw InputError("{}: file number {}, expected less than {}", where, piece.file, files);
  }
  piece.key = json_string(value, "key", where);
  piece.slice.box.offset = json_counts(value, "offset", where);
  piece.slice.box.extent = json_counts(value, "extent", where);
  const std::vector<int64_t> range = json_counts(value, "range", where);
  if (range.size() != 2) throw InputError("{}: a range of {} numbers, expected begin and end", where, range.size());
  piece.slice.range = {range[0], range[1]};
  if (auto fault = find_fault(piece.slice, tensor.shape)) throw InputError("{}: {}", where, *fault);
  return piece;
}

TensorRecord decode_tensor(const std::string& name, const json& value, size_t files, const std::string& file) {
  const std::string where = fmt::format("{}: tensor \"{}\"", file, name);
  TensorRecord tensor;
  tensor.name = name;
  TensorKind kind = json_tensor_kind(value, where);
  tensor.dtype = kind.dtype;
  tensor.shape = std::move(kind.shape);
  const json& pieces = json_array(value, "pieces", where);
  for (size_t number = 0; number < pieces.size(); ++number) {
    tensor.pieces.push_back(decode_piece(pieces[number], tensor, files, fmt::format("{}, piece {}", where, number)));
  }
  return tensor;
}

}  // namespace

const TensorRecord* Manifest::find(const std::string& name) const {
  auto found =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const TensorRecord& tensor, const std::string& wanted) { return tensor.name < wanted; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

std::string encode_manifest(const Manifest& manifest) {
  json files = json::array();
  for (const FileRecord& file : manifest.files) {
    files.push_back({{"name", file.name}, {"size", file.size}, {"xxh3", checksum_text(file.checksum)}});
  }
  json tensors = json::object();
  for (const TensorRecord& tensor : manifest.tensors) tensors[tensor.name] = encode_tensor(tensor);
  json document = {
      {"format", Manifest::kFormat}, {"step", manifest.step},     {"consumed_samples", manifest.consumed_samples},
      {"state", manifest.state},     {"files", std::move(files)}, {"tensors", std::move(tensors)}};
  try {
    document["xxh3"] = checksum_text(checksum_of_json(document));
    return document.dump() + "\n";
  } catch (const json::exception& error) {
    throw InputError("the manifest of step {} has a name or state that is not UTF-8: {}", manifest.step, error.what());
  }
}

Manifest decode_manifest(const std::string& text, const std::string& where) {
  json document = parse_json(text, where);
  const int64_t format = json_count(document, "format", where);
  if (format != Manifest::kFormat) {
    throw InputError("{}: format {}, this program reads format {}; read it with the version of ridgeline that wrote it",
                     where, format, Manifest::kFormat);
  }
  const std::string checksum = json_string(document, "xxh3", where);
  document.erase("xxh3");
  const std::string found = checksum_text(checksum_of_json(document));
  if (found != checksum) {
    throw InputError("{}: its content has the checksum {}, but it says {}; the file is damaged", where, found,
                     checksum);
  }
  Manifest manifest;
  manifest.step = json_count(document, "step", where);
  manifest.consumed_samples = json_count(document, "consumed_samples", where);
  manifest.state = json_object(document, "state", where);
  for (const json& file : json_array(document, "files", where)) manifest.files.push_back(decode_file(file, where));
  for (const auto& [name, value] : json_object(document, "tensors", where).items()) {
    manifest.tensors.push_back(decode_tensor(name, value, manifest.files.size(), where));
  }
  return manifest;
}

Manifest read_manifest(const Path& path) {
  return decode_manifest(read_text_file(path.string(), "the manifest of a checkpoint", kMaxManifest), path.string());
}

}  // namespace ridgeline::checkpoint
