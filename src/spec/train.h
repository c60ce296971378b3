// TrainSpec: all that `ridgeline train` needs to know, as read from a config file. One struct for each TOML table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::spec {

enum class Precision { fp32, bf16, fp16 };
enum class DecayKind { constant, cosine, linear, warmup_stable_decay };

struct OptimizerSpec {             // [optimizer]: AdamW
  double lr = 1e-3;
  double min_lr = 1e-4;
  int64_t warmup_steps = 0;        // linear from 0
  DecayKind decay = DecayKind::cosine;
  int64_t decay_steps = 0;         // steps until min_lr is reached; 0 means training.steps
  double stable_fraction = 0.8;    // warmup_stable_decay: share of decay_steps before the decay starts
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;       // not on norms and biases
  double clip = 1.0;               // global gradient norm; 0 turns clipping off
};

struct PrecisionSpec {             // [precision]
  Precision compute = Precision::fp32;
  double initial_loss_scale = 65536.0;   // fp16 only
  int64_t loss_scale_window = 1000;      // good steps before the scale doubles
};

struct DataSpec {                  // [data]
  std::string path;                // prefix of PATH.bin and PATH.idx
  std::string validation_path;     // prefix of a second pair; empty: the end of `path` is held out
  double validation_fraction = 0.05;  // of the tokens of `path`, at its end
  bool separate_documents = false;    // tokens see their own document alone, and positions begin anew with each
};

struct EvaluationSpec {            // [evaluation]
  int64_t every = 0;               // steps; 0 never
  int64_t samples = 64;            // samples of the held-out part
};

struct CheckpointSpec {            // [checkpoint]
  int64_t every = 0;               // steps; 0: only at the end
  int64_t keep = 2;                // newest complete checkpoints kept; 0 keeps all
  bool at_end = true;
  bool resume = true;              // continue from the newest complete checkpoint of the run folder
};

struct TrainingSpec {              // [training]
  std::string run = "runs/default";  // run folder: metrics.jsonl, TensorBoard events, checkpoints/
  int64_t steps = 100;
  uint64_t seed = 1234;
  std::string device = "auto";     // auto, cpu, cuda, xpu
  int64_t threads = 0;             // CPU threads of a rank; 0: the machine's cores divided among its ranks
  int64_t log_every = 1;
  int64_t check_replicas = 0;            // steps between comparisons of all copies of parameters; 0: never
  std::string profile_steps;             // "10:12": steps whose trace is written; empty: none
  double communication_timeout = 600.0;  // seconds before a collective that does not end is an error
};

struct TrainSpec {
  std::string model_from;          // model.from: folder of Hugging Face weights to start from; empty: drawn at random
  std::string model_preset;        // model.preset, empty where the shape is spelled out
  ModelSpec model;
  Strategy strategy;
  PrecisionSpec precision;
  OptimizerSpec optimizer;
  DataSpec data;
  EvaluationSpec evaluation;
  CheckpointSpec checkpoint;
  TrainingSpec training;
};

struct StepRange {
  int64_t first = 0, last = 0;  // both are in it; counted from 1, as metrics count
};

// Of training.profile_steps: "10:12", or "10" for one step; nothing where it is empty. Throws InputError.
std::optional<StepRange> profile_range(const TrainingSpec& training);

std::string to_string(Precision precision);
std::string to_string(DecayKind kind);

}  // namespace ridgeline::spec
