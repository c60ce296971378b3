#include "cli/checkpoint_convert.h"

#include <memory>

#include "checkpoint/hugging_face/convert.h"
#include "checkpoint/store.h"
#include "cli/print_json.h"
#include "cli/saved_run.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "spec/config.h"
#include "spec/parameters.h"

namespace ridgeline::cli {
namespace {

using checkpoint::Path;
using nlohmann::json;

struct ImportArguments {
  std::string folder, out;
  std::vector<std::string> sets;
  bool wants_json = false;
};

// The config of a run that begins with the folder's weights.
spec::TrainSpec spec_of(const ImportArguments& arguments) {
  std::vector<std::string> sets = {"model.from=" + arguments.folder, "training.run=" + arguments.out};
  sets.insert(sets.end(), arguments.sets.begin(), arguments.sets.end());
  spec::TrainConfig config = spec::load_train_spec("", sets);
  config.sources.located([&] { spec::require_trainable(config.spec.model); });
  return config.spec;
}

void run_import(const ImportArguments& arguments) {
  set_up_log();
  const spec::TrainSpec spec = spec_of(arguments);
  const Path run = spec.training.run, folder = run / "checkpoints";
  if (!checkpoint::list_checkpoints(folder).empty()) {
    throw InputError("--out {}: there are checkpoints already; expected a new run folder", run.string());
  }
  const checkpoint::HuggingFaceReader weights(arguments.folder, spec.model);
  const std::string config = spec::to_saved_toml(spec);
  const Path written =
      checkpoint::import_hugging_face(weights, spec.model, folder, {{"updates", 0}, {"config", config}});
  checkpoint::write_text(checkpoint::real_file_system(), run / "config.toml", config);
  const int64_t parameters = spec::parameter_count(spec.model);
  if (arguments.wants_json) {
    print_json({{"checkpoint", written.string()},
                {"config", (run / "config.toml").string()},
                {"family", spec::hugging_face_type(spec.model)},
                {"parameters", parameters}});
    return;
  }
  fmt::print("{}: {} parameters ({}); `ridgeline train {}` trains on from there\n", written.string(),
             format_count(static_cast<double>(parameters)), spec::hugging_face_type(spec.model),
             (run / "config.toml").string());
}

struct ExportArguments {
  std::string path, out, stored = "fp32";
  double file_gib = 5;
  bool wants_json = false;
};

spec::Precision precision_of(const std::string& name) {
  if (name == "bf16") return spec::Precision::bf16;
  return name == "fp16" ? spec::Precision::fp16 : spec::Precision::fp32;
}

void run_export(const ExportArguments& arguments) {
  set_up_log();
  const SavedRun run = open_saved_run(arguments.path, {});
  checkpoint::CheckpointReader reader(run.checkpoint);
  const auto largest_file = static_cast<uint64_t>(arguments.file_gib * static_cast<double>(uint64_t{1} << 30));
  const checkpoint::Exported exported = checkpoint::export_hugging_face(
      reader, run.spec.model, arguments.out, {precision_of(arguments.stored), largest_file});
  if (arguments.wants_json) {
    print_json({{"checkpoint", run.checkpoint.string()},
                {"folder", arguments.out},
                {"family", spec::hugging_face_type(run.spec.model)},
                {"bytes", exported.bytes},
                {"files", exported.files}});
    return;
  }
  fmt::print("{}: {} of {} in {} {}, from {}\n", arguments.out, format_bytes(static_cast<double>(exported.bytes)),
             arguments.stored, exported.files, exported.files == 1 ? "file" : "files", run.checkpoint.string());
}

}  // namespace

void add_import_command(CLI::App& checkpoint) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = checkpoint.add_subcommand("import", "Make a run of Hugging Face weights");
  command->add_option("FOLDER", arguments->folder, "with config.json and safetensors")->required();
  command->add_option("--out", arguments->out, "run folder to make: config.toml and a checkpoint of step 0")->required();
  command->add_option("--set", arguments->sets, "KEY=VALUE of the config, such as model.sequence; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Example:\n"
      "  ridgeline checkpoint import llama-3-8b/ --out runs/llama --set model.sequence=4096\n"
      "  ridgeline train runs/llama/config.toml --set data.path=corpus");
  command->callback([arguments] { run_import(*arguments); });
}

void add_export_command(CLI::App& checkpoint) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = checkpoint.add_subcommand("export", "Write Hugging Face weights of a checkpoint");
  command->add_option("PATH", arguments->path, "run folder (its newest complete checkpoint), or one checkpoint")
      ->required();
  command->add_option("--out", arguments->out, "new folder: config.json and safetensors")->required();
  command->add_option("--dtype", arguments->stored, "format of the numbers")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  command->add_option("--file-gib", arguments->file_gib, "largest size of a file, GiB")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer("Example:\n  ridgeline checkpoint export runs/llama --out llama-tuned --dtype bf16");
  command->callback([arguments] { run_export(*arguments); });
}

}  // namespace ridgeline::cli
