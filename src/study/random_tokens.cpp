#include "study/random_tokens.h"

#include <filesystem>
#include <vector>

#include "core/random.h"
#include "data/token_writer.h"

namespace ridgeline::study {
namespace {

constexpr int64_t kSamples = 64;  // of an epoch: a trial goes round and round

}  // namespace

std::string random_tokens_path(const StudyFile& file) {
  return std::filesystem::absolute(file.store).replace_extension(".tokens").string();
}

void ensure_random_tokens(const Problem& problem) {
  const std::string path = random_tokens_path(problem.file());
  if (!problem.is_measured() || problem.train().data.path != path || std::filesystem::exists(path + ".idx")) return;
  const spec::ModelSpec& model = problem.train().model;
  data::TokenWriter writer(path, data::token_type_for(model.vocabulary));
  const auto key = random_key(0, "random tokens");
  std::vector<int64_t> sample(static_cast<size_t>(model.sequence + 1));
  for (int64_t number = 0; number < kSamples; ++number) {
    for (size_t at = 0; at < sample.size(); ++at) {
      const PhiloxBlock block = philox4x32({static_cast<uint32_t>(at), static_cast<uint32_t>(number), 0, 0}, key);
      sample[at] = static_cast<int64_t>(block[0] % static_cast<uint64_t>(model.vocabulary));
    }
    writer.add(sample);
    writer.end_document();
  }
  writer.finish();
}

}  // namespace ridgeline::study
