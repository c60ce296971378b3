// ridgeline data: token files from text, and what is in them.
#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/log.h"
#include "core/text.h"
#include "data/token_file.h"
#include "data/tokenize.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

struct TokenizeArguments {
  data::TokenizeOptions options;
  bool wants_json = false;
};

void report_progress(const data::TokenizeProgress& progress) {
  const double share = progress.total_bytes > 0 ? 100.0 * progress.read_bytes / progress.total_bytes : 100.0;
  spdlog::info("{:.0f} % of {}, {} tokens ({})", share, format_bytes(progress.total_bytes),
               format_count(progress.tokens), progress.input);
}

int tokenize(TokenizeArguments& arguments) {
  set_up_log();
  arguments.options.progress = report_progress;
  const data::TokenizeResult result = data::tokenize_bytes(arguments.options);
  if (arguments.wants_json) {
    print_json({{"output", arguments.options.output},
                {"documents", result.documents},
                {"tokens", result.tokens},
                {"text_bytes", result.text_bytes},
                {"type", to_string(result.type)},
                {"vocabulary", result.vocabulary}});
  } else {
    fmt::print("{}: {} documents, {} tokens ({}) of vocabulary {}\n", arguments.options.output, result.documents,
               result.tokens, to_string(result.type), result.vocabulary);
  }
  return kDone;
}

struct InspectArguments {
  std::string prefix;
  int64_t vocabulary = 0;  // 0: tokens are not looked at
  bool wants_json = false;
};

int inspect(const InspectArguments& arguments) {
  const data::TokenFile file(arguments.prefix);
  if (arguments.vocabulary > 0) file.check_vocabulary(arguments.vocabulary);
  int64_t longest = 0;
  for (int64_t index = 0; index < file.documents(); ++index) longest = std::max(longest, file.document(index).size());
  if (arguments.wants_json) {
    print_json({{"prefix", file.prefix()},
                {"documents", file.documents()},
                {"sequences", file.sequences()},
                {"tokens", file.tokens()},
                {"longest_document", longest},
                {"type", to_string(file.type())},
                {"checked_vocabulary", arguments.vocabulary > 0 ? json(arguments.vocabulary) : json()}});
    return kDone;
  }
  fmt::print("{}: {} documents in {} sequences, {} tokens ({}), longest document {} tokens\n", file.prefix(),
             file.documents(), file.sequences(), file.tokens(), to_string(file.type()), longest);
  if (arguments.vocabulary > 0) fmt::print("all tokens are below {}\n", arguments.vocabulary);
  return kDone;
}

void add_tokenize(CLI::App& data_command, int& exit_code) {
  auto arguments = std::make_shared<TokenizeArguments>();
  CLI::App* command = data_command.add_subcommand("tokenize", "Text files (also .gz, .dz) into a token file of bytes");
  command->add_option("INPUT", arguments->options.inputs, "text files, read in this order")->required();
  command->add_option("-o,--output", arguments->options.output, "prefix of the .bin and .idx that are written")
      ->type_name("PREFIX")
      ->required();
  const std::map<std::string, data::DocumentSplit> splits = {{"file", data::DocumentSplit::file},
                                                             {"paragraph", data::DocumentSplit::paragraph},
                                                             {"line", data::DocumentSplit::line}};
  command->add_option("--documents", arguments->options.documents, "what one document is: file, paragraph or line")
      ->transform(CLI::CheckedTransformer(splits))
      ->type_name("KIND");
  command->add_flag("--overwrite", arguments->options.overwrite, "replace an existing output");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer("Example:\n  ridgeline data tokenize book.txt notes.txt.gz --documents paragraph --output corpus");
  command->callback([arguments, &exit_code] { exit_code = tokenize(*arguments); });
}

void add_inspect(CLI::App& data_command, int& exit_code) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = data_command.add_subcommand("inspect", "Check a token file and say what it holds");
  command->add_option("PREFIX", arguments->prefix, "prefix of .bin and .idx")->required();
  command->add_option("--vocabulary", arguments->vocabulary, "check that all tokens are below N")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer("Example:\n  ridgeline data inspect corpus --vocabulary 257");
  command->callback([arguments, &exit_code] { exit_code = inspect(*arguments); });
}

}  // namespace

void add_data_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("data", "Make and inspect token files");
  command->require_subcommand(1);
  command->footer("Example:\n  ridgeline data tokenize book.txt --output corpus");
  add_tokenize(*command, exit_code);
  add_inspect(*command, exit_code);
}

}  // namespace ridgeline::cli
