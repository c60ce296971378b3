// Rotary positions and sliding windows as transformers and those who followed it name them. transformers 5 has all of
// rotation below "rope_parameters", earlier ones have "rope_theta" and, where positions are stretched, "rope_scaling".
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

void read_base(Reading& reading, const std::string& prefix, const std::string& kind) {
  RotarySpec& rotary = reading.config().spec.model.rotary;
  for (const char* name : {"rope_parameters/rope_theta", "rope_theta", "rope_scaling/rope_theta"}) {
    if (reading.set(prefix + name, rotary.base, "model.rotary_base")) return;
  }
  rotary.base = kind == "mixtral" ? 1e6 : 10'000;
  reading.assume(assignment("model.rotary_base", rotary.base) + " (default of " + kind + ")");
}

// The kind of scaling, none where it is one that no key can say.
RotaryScaling read_scaling(Reading& reading, const std::string& below) {
  for (const char* key : {"rope_type", "type"}) {
    const auto type = reading.text(below + key);
    if (!type) continue;
    RotaryScaling scaling = RotaryScaling::none;
    if (*type == "linear") scaling = RotaryScaling::linear;
    if (*type == "llama3") scaling = RotaryScaling::llama3;
    if (*type == "yarn") scaling = RotaryScaling::yarn;
    if (scaling == RotaryScaling::none && *type != "default") {
      reading.beyond(below + key, "turns positions in a way of its own; no size or work changes");
      return RotaryScaling::none;
    }
    reading.understood(below + key, assignment("model.rotary_scaling", to_string(scaling)));
    if (scaling != RotaryScaling::none) return scaling;
  }
  return RotaryScaling::none;
}

void read_stretching(Reading& reading, const std::string& prefix, const std::string& below) {
  RotarySpec& rotary = reading.config().spec.model.rotary;
  if (!reading.set(below + "factor", rotary.factor, "model.rotary_factor")) {
    reading.refuse(below + "factor", "by how much positions are stretched");
  }
  const std::string original = "original_max_position_embeddings";
  const auto set_original = [&](const std::string& name) {
    return reading.set(name, rotary.original_sequence, "model.rotary_original_sequence", 1);
  };
  if (rotary.scaling == RotaryScaling::llama3) {
    if (!set_original(below + original)) set_original(prefix + original);
    reading.set(below + "low_freq_factor", rotary.low_frequency, "model.rotary_low_frequency");
    reading.set(below + "high_freq_factor", rotary.high_frequency, "model.rotary_high_frequency");
  } else if (rotary.scaling == RotaryScaling::yarn) {
    if (!set_original(below + original) && !set_original(prefix + original)) {
      rotary.original_sequence = reading.integer(prefix + "max_position_embeddings", 1).value_or(0);
      reading.assume(assignment("model.rotary_original_sequence", rotary.original_sequence) +
                     " (max_position_embeddings)");
    }
    reading.set(below + "beta_fast", rotary.beta_fast, "model.rotary_beta_fast");
    reading.set(below + "beta_slow", rotary.beta_slow, "model.rotary_beta_slow");
    reading.set(below + "attention_factor", rotary.attention_factor, "model.rotary_attention_factor");
    for (const char* name : {"mscale", "mscale_all_dim", "truncate"}) {
      reading.beyond(below + name, "another yarn; no size or work changes");
    }
  }
  reading.ignore_below(below, "has no effect with this kind of scaling");
}

}  // namespace

void read_rotary(Reading& reading, const std::string& prefix, const std::string& kind) {
  read_base(reading, prefix, kind);
  if (const auto share = reading.number(prefix + "partial_rotary_factor", 0, 1)) {
    if (*share < 1) reading.beyond(prefix + "partial_rotary_factor", "part of a head is not turned; no size changes");
    reading.ignore(prefix + "partial_rotary_factor", "1: whole heads are turned");
  }
  RotarySpec& rotary = reading.config().spec.model.rotary;
  for (const char* table : {"rope_parameters", "rope_scaling"}) {
    const std::string below = prefix + table + "/";
    if (rotary.scaling == RotaryScaling::none) {
      rotary.scaling = read_scaling(reading, below);
      if (rotary.scaling != RotaryScaling::none) read_stretching(reading, prefix, below);
    }
    reading.ignore_below(prefix + table, "has no effect with this kind of scaling");
  }
  reading.ignore(prefix + "rope_interleaved", "the order of channels within a head; no size or work changes");
}

void read_sliding_window(Reading& reading, const std::string& prefix, const std::string& kind) {
  ModelSpec& model = reading.config().spec.model;
  const std::string window = prefix + "sliding_window", use = prefix + "use_sliding_window";
  if (kind == "mistral") {
    if (!reading.set(window, model.sliding_window, "model.sliding_window", 1) && !reading.has(window)) {
      model.sliding_window = 4096;
      reading.assume("model.sliding_window = 4096 (default of mistral)");
    }
  } else if (reading.boolean(use).value_or(false) && reading.integer(window, 0).value_or(0) > 0) {
    const auto whole_layers = reading.integer(prefix + "max_window_layers", 0);
    if (whole_layers == 0) {
      reading.set(window, model.sliding_window, "model.sliding_window", 1);
    } else {
      reading.beyond(window, "some layers see a window alone; attention is counted over the whole sequence");
    }
    reading.understood(use, assignment("model.sliding_window", model.sliding_window));
  }
  reading.ignore({"sliding_window", "use_sliding_window", "max_window_layers"}, "all layers see the whole sequence",
                 prefix);
  reading.ignore_below(prefix + "layer_types", "what sliding_window says");
}

}  // namespace ridgeline::spec
