// What an argument of `ridgeline report` is: found out by looking at it, so that no flag has to say it.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::cli {

struct ReportSubject {
  enum class Kind {
    run,       // `path`: its metrics.jsonl
    study,     // `path`: its study file
    config,    // `path`: a config of `train`, or of another program
    document,  // `path`: what a command printed for --json
  };
  Kind kind = Kind::run;
  std::string name;  // as it was given
  std::string path;
};

// A folder is a run, a .toml file a study or a config, a .sqlite file the study whose file lies beside it, a .json file
// a document; all else is taken for a metrics.jsonl. Throws InputError where that cannot be.
ReportSubject report_subject(const std::string& argument);
std::vector<ReportSubject> report_subjects(const std::vector<std::string>& arguments);

}  // namespace ridgeline::cli
