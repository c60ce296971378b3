// Writes texts to stdout as they grow, or one JSON document of them all.
#include <chrono>
#include <cstdio>

#include "cli/engine_commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/log.h"
#include "core/text.h"
#include "data/tokenize.h"
#include "launch/threads.h"
#include "train/byte_text.h"
#include "train/generate.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

void show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

struct Writer {
  const GenerateArguments& arguments;
  const train::TextModel& model;
  std::vector<int64_t> prompt;

  bool writes_bytes() const { return model.model().vocabulary == data::kByteVocabulary; }
  std::string text(std::span<const int64_t> tokens) const {
    if (writes_bytes()) return train::text_of(tokens);
    std::vector<std::string> words;
    for (const int64_t token : tokens) words.push_back(std::to_string(token));
    return join(words, " ");
  }

  // Tokens of text `sample`; `shown` hears of what can be shown.
  std::vector<int64_t> write(int64_t sample, const std::function<void(const std::string&)>& shown) const {
    const train::Generation generation{
        arguments.tokens,
        arguments.stop_at_end,
        {arguments.temperature, arguments.top_k, arguments.top_p, arguments.seed}};
    std::vector<int64_t> tokens;
    train::ByteText stream;
    train::generate(model, prompt, generation, sample, [&](int64_t token) {
      tokens.push_back(token);
      shown(writes_bytes() ? stream.add(token) : " " + std::to_string(token));
    });
    shown(writes_bytes() ? stream.finish() : "");
    return tokens;
  }
};

void print_text(const Writer& writer) {
  for (int64_t sample = 0; sample < writer.arguments.samples; ++sample) {
    if (writer.arguments.samples > 1) {
      show(fmt::format("{}--- {} of {} ---\n", sample > 0 ? "\n" : "", sample + 1, writer.arguments.samples));
    }
    show(writer.text(writer.prompt));
    writer.write(sample, show);
    show("\n");
  }
}

void print_document(const Writer& writer, const SavedRun& run) {
  const auto start = std::chrono::steady_clock::now();
  json samples = json::array();
  size_t written = 0;
  for (int64_t sample = 0; sample < writer.arguments.samples; ++sample) {
    const std::vector<int64_t> tokens = writer.write(sample, [](const std::string&) {});
    written += tokens.size();
    samples.push_back({{"text", writer.text(tokens)}, {"tokens", tokens}});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_json({{"checkpoint", run.checkpoint.string()},
              {"step", run.step},
              {"prompt", writer.text(writer.prompt)},
              {"prompt_tokens", writer.prompt},
              {"samples", samples},
              {"seconds", seconds},
              {"tokens_per_second", static_cast<double>(written) / seconds}});
}

}  // namespace

int run_generate(const GenerateArguments& arguments) {
  set_up_log();
  const SavedRun run = load(arguments);
  const bool as_numbers = !arguments.prompt_tokens.empty();
  std::vector<int64_t> prompt = as_numbers ? arguments.prompt_tokens : train::tokens_of(arguments.prompt);
  train::checked_prompt(prompt, run.spec.model);  // before anything is printed
  const int64_t threads = run.spec.training.threads;
  platform::set_threads(threads > 0 ? threads : launch::usable_cores());
  const platform::Device device = platform::Device::select(run.spec.training.device);
  device.make_current();
  const train::TextModel model(run.spec, run.checkpoint, device);
  spdlog::info("{}: step {}, {} parameters, on {}", run.checkpoint.string(), run.step,
               format_count(static_cast<double>(spec::parameter_count(run.spec.model))), device.name());
  const Writer writer{arguments, model, std::move(prompt)};
  if (arguments.wants_json) {
    print_document(writer, run);
  } else {
    print_text(writer);
  }
  return kDone;
}

}  // namespace ridgeline::cli
