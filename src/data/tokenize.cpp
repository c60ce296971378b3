#include "data/tokenize.h"

#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "data/document_splitter.h"
#include "data/text_reader.h"
#include "data/token_writer.h"

namespace ridgeline::data {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;

// Says how far the work is, once it takes long enough for anyone to wonder.
class ProgressReport {
 public:
  ProgressReport(const TokenizeOptions& options, int64_t total_bytes) : report_(options.progress) {
    state_.total_bytes = total_bytes;
  }
  void update(const std::string& input, int64_t read_bytes, int64_t tokens) {
    if (!report_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(500);
    state_.input = input;
    state_.read_bytes = read_bytes;
    state_.tokens = tokens;
    report_(state_);
  }

 private:
  const std::function<void(const TokenizeProgress&)>& report_;
  TokenizeProgress state_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(2);
};

void check_output(const TokenizeOptions& options) {
  for (const auto* ending : {".idx", ".bin"}) {
    const auto path = options.output + ending;
    if (!options.overwrite && std::filesystem::exists(path)) {
      throw InputError("{}: exists already; choose another output, remove it, or ask for it to be overwritten", path);
    }
  }
}

// Opens each input once before the work starts, so that a name mistyped at the end of a long list is told at once.
int64_t total_size(const std::vector<std::string>& inputs) {
  int64_t total = 0;
  for (const auto& input : inputs) total += TextReader(input).size();
  return total;
}

}  // namespace

TokenizeResult tokenize_bytes(const TokenizeOptions& options) {
  if (options.inputs.empty()) throw InputError("no input file was named; expected one text file or more");
  check_output(options);
  ProgressReport progress(options, total_size(options.inputs));

  TokenizeResult result;
  result.type = token_type_for(kByteVocabulary);
  TokenWriter writer(options.output, result.type);
  DocumentSplitter splitter(writer, options.documents);
  std::vector<char> chunk(kChunkBytes);
  int64_t finished = 0;
  for (const auto& input : options.inputs) {
    TextReader reader(input);
    while (const auto count = reader.read(chunk)) {
      splitter.add(input, {chunk.data(), count});
      result.text_bytes += static_cast<int64_t>(count);
      progress.update(input, finished + reader.position(), writer.tokens());
    }
    splitter.end_file();
    finished += reader.size();
  }
  result.documents = writer.documents();
  result.tokens = writer.tokens();
  if (result.documents == 0) {
    throw InputError("{}: no text in {} input file(s) of {} bytes; nothing was written", options.inputs.front(),
                     options.inputs.size(), result.text_bytes);
  }
  writer.finish();
  return result;
}

}  // namespace ridgeline::data
