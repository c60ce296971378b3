#include "cli/report_subject.h"

#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/text_file.h"

namespace ridgeline::cli {
namespace {

using Kind = ReportSubject::Kind;
namespace fs = std::filesystem;

bool begins_with(const fs::path& path, const std::string& magic) {
  std::string head(magic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == magic;
}

// A study names its model, a config describes it in a table.
Kind kind_of_toml(const std::string& path) {
  const std::string text = read_text_file(path, "a study file, or a config of `ridgeline train`");
  try {
    const toml::table table = toml::parse(text, path);
    return table["model"].is_string() ? Kind::study : Kind::config;
  } catch (const toml::parse_error&) {
    return Kind::config;  // whose reader says what is wrong, and where
  }
}

std::string study_file_of(const std::string& store) {
  const std::string path = fs::path(store).replace_extension(".toml").string();
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return path;
  throw InputError(
      "{}: is a study's store, which does not say what was searched, and there is no {}; give the study file that "
      "`ridgeline tune` was given",
      store, path);
}

}  // namespace

ReportSubject report_subject(const std::string& argument) {
  std::error_code ignored;
  const fs::path path(argument);
  if (fs::is_directory(path, ignored)) {
    const fs::path metrics = path / "metrics.jsonl";
    if (!fs::exists(metrics, ignored) && fs::is_directory(path / "checkpoints", ignored)) {
      throw InputError("{}: cannot read: no such file; the run in {} has finished no step yet", metrics.string(),
                       argument);
    }
    return {Kind::run, argument, metrics.string()};
  }
  if (fs::is_regular_file(path, ignored)) {
    if (path.extension() == ".toml") return {kind_of_toml(argument), argument, argument};
    if (path.extension() == ".json") return {Kind::document, argument, argument};
    if (begins_with(path, "SQLite format 3")) return {Kind::study, argument, study_file_of(argument)};
    if (path.extension() == ".sqlite") {
      throw InputError("{}: is no SQLite file; expected the store of a study", argument);
    }
  }
  return {Kind::run, argument, argument};
}

std::vector<ReportSubject> report_subjects(const std::vector<std::string>& arguments) {
  std::vector<ReportSubject> subjects;
  std::set<std::string> seen;
  for (const std::string& argument : arguments) {
    subjects.push_back(report_subject(argument));
    std::error_code ignored;
    const fs::path real = fs::weakly_canonical(subjects.back().path, ignored);
    if (!seen.insert(real.string()).second) throw InputError("{}: was given twice", argument);
  }
  return subjects;
}

}  // namespace ridgeline::cli
