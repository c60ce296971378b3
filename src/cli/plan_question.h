// What `plan` is asked: the model, the machine and the space of strategies that every search of the command shares, so
// that a flag holds in each of them.
#pragma once

#include <string>
#include <vector>

#include "cli/plan_arguments.h"
#include "search/best.h"

namespace ridgeline::cli {

struct PlanArguments {
  std::string model;
  MachineArguments machine;
  int64_t global_batch = 0;
  int64_t sequence = 0;
  int64_t context = 0;  // most ranks that may share a sequence; 0: as the sequence is long
  size_t top = 10;
  std::string write;
  bool only_trainable = false;
  bool wants_json = false;
};

struct PlanQuestion {
  spec::TrainSpec train;  // what a written config starts from; its model with the sequence asked for
  spec::Machine machine;
  simulate::Evaluator evaluator;
};

// Throws InputError for input that is wrong, and with --trainable for a model that `train` does not know.
PlanQuestion question_of(const PlanArguments& arguments);

search::Space space_of(const PlanArguments& arguments, const spec::ModelSpec& model, int64_t devices);

// Throws InputError where no strategy of so many devices is legal at all.
search::Ranking rank(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices, size_t keep);

// A change with which something fits.
struct Change {
  std::string text;      // "devices 128 -> 256"
  int64_t devices = 0;   // where it changes these, else 0
  int64_t sequence = 0;  // where it changes this, else 0
  simulate::Prediction best;
};

// The least of a few multiples of the devices, as far as the machine has them, and the longest halved sequence.
std::vector<Change> changes_that_fit(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices);

// The best strategy of `ranking` that trains, as a config for `train`. Throws InputError where there is none.
void write_config(const PlanArguments& arguments, const PlanQuestion& question, const search::Ranking& ranking,
                  int64_t devices);

}  // namespace ridgeline::cli
