#include "cli/study_problem.h"

#include "cli/plan_arguments.h"
#include "core/error.h"

namespace ridgeline::cli {

study::Problem load_problem(const std::string& study_file, const std::vector<std::string>& sets) {
  study::StudyFile file = study::load_study_file(study_file, sets);
  spec::TrainSpec train;
  file.sources.located([&] {
    try {
      train = load_model(file.model);
    } catch (const InputError& error) {
      throw InputError("model = \"{}\": {}", file.model, error.what());
    }
  });
  return study::Problem(std::move(file), std::move(train));
}

}  // namespace ridgeline::cli
