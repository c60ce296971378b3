// ridgeline checkpoint: what saved state there is, what it holds, and whether it is intact.
#include <memory>

#include "checkpoint/choose.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "cli/checkpoint_convert.h"
#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

using checkpoint::Path;
using nlohmann::json;

struct Arguments {
  std::string path;
  bool wants_json = false;
};

int list(const Arguments& arguments) {
  json entries = json::array();
  for (const Path& path : checkpoint::list_checkpoints(checkpoint::checkpoint_folder(arguments.path))) {
    const auto damage = checkpoint::find_damage(path);
    entries.push_back({{"path", path.string()}, {"complete", !damage}, {"damage", damage ? json(*damage) : json()}});
    if (!arguments.wants_json) fmt::print("{}  {}\n", path.string(), damage ? "DAMAGED: " + *damage : "complete");
  }
  if (arguments.wants_json) print_json({{"checkpoints", entries}});
  if (entries.empty() && !arguments.wants_json) fmt::print("no checkpoints in {}\n", arguments.path);
  return kDone;
}

json describe(const checkpoint::TensorRecord& tensor) {
  return {{"name", tensor.name},
          {"dtype", checkpoint::to_string(tensor.dtype)},
          {"shape", tensor.shape},
          {"pieces", tensor.pieces.size()}};
}

int inspect(const Arguments& arguments) {
  const checkpoint::CheckpointReader reader(checkpoint::choose_checkpoint(arguments.path));
  const checkpoint::Manifest& manifest = reader.manifest();
  double bytes = 0;
  for (const auto& file : manifest.files) bytes += static_cast<double>(file.size);
  if (arguments.wants_json) {
    json tensors = json::array();
    for (const auto& tensor : manifest.tensors) tensors.push_back(describe(tensor));
    print_json({{"path", reader.path().string()},
                {"step", manifest.step},
                {"consumed_samples", manifest.consumed_samples},
                {"state", manifest.state},
                {"bytes", static_cast<uint64_t>(bytes)},
                {"files", manifest.files.size()},
                {"tensors", tensors}});
    return kDone;
  }
  fmt::print("{}: step {}, {} samples consumed, {} tensors in {} files, {}\n", reader.path().string(), manifest.step,
             manifest.consumed_samples, manifest.tensors.size(), manifest.files.size(), format_bytes(bytes));
  for (const auto& tensor : manifest.tensors) {
    fmt::print("  {} {} {}\n", tensor.name, checkpoint::to_string(tensor.dtype), checkpoint::shape_text(tensor.shape));
  }
  return kDone;
}

// A line for each tenth of the bytes: a large checkpoint takes minutes to read.
struct VerifyProgress {
  uint64_t tenths = 0;

  void operator()(uint64_t done, uint64_t total) {
    const uint64_t now =
        total > 0 ? static_cast<uint64_t>(10.0 * static_cast<double>(done) / static_cast<double>(total)) : 10;
    if (now == tenths) return;
    tenths = now;
    spdlog::info("verified {} of {}", format_bytes(static_cast<double>(done)),
                 format_bytes(static_cast<double>(total)));
  }
};

int verify(const Arguments& arguments) {
  set_up_log();
  const checkpoint::CheckpointReader reader(checkpoint::choose_checkpoint(arguments.path));
  const std::vector<std::string> faults = reader.verify(VerifyProgress());
  if (arguments.wants_json) print_json({{"path", reader.path().string()}, {"faults", faults}});
  if (!arguments.wants_json) {
    for (const std::string& fault : faults) fmt::print("{}\n", fault);
    if (faults.empty())
      fmt::print("{}: all {} files are intact\n", reader.path().string(), reader.manifest().files.size());
  }
  return faults.empty() ? kDone : kFailed;
}

void add(CLI::App& parent, const char* name, const char* doc, const char* example, int (*run)(const Arguments&),
         int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = parent.add_subcommand(name, doc);
  command->add_option("PATH", arguments->path, "run folder (its newest complete checkpoint), or one checkpoint")
      ->required();
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(example);
  command->callback([arguments, run, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace

void add_checkpoint_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("checkpoint", "List, inspect and verify saved state; import and export weights");
  command->require_subcommand(1);
  command->footer("Example:\n  ridgeline checkpoint verify runs/first");
  add(*command, "list", "All checkpoints of a run, newest first", "Example:\n  ridgeline checkpoint list runs/first",
      list, exit_code);
  add(*command, "inspect", "What a checkpoint holds",
      "Example:\n  ridgeline checkpoint inspect runs/first/checkpoints/step-00000100", inspect, exit_code);
  add(*command, "verify", "Compare every file with its checksum", "Example:\n  ridgeline checkpoint verify runs/first",
      verify, exit_code);
  add_import_command(*command);
  add_export_command(*command);
}

}  // namespace ridgeline::cli
