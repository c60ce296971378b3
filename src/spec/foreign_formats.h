// What the keys of each format mean, a function a format: private to spec/foreign_config.cpp.
#pragma once

#include <initializer_list>
#include <string>

#include "spec/foreign_reading.h"

namespace ridgeline::spec {

void read_hugging_face(Reading& reading);
void read_deepspeed(Reading& reading);
void read_torchtitan(Reading& reading);
void read_nanotron(Reading& reading);

// The arguments of a shell script that starts Megatron-LM.
void read_megatron(const std::string& text, const std::string& file, ForeignConfig& config);

// The shape of a Llama-like model from keys as transformers names them, each behind `prefix`; its sequence apart.
void read_llama_shape(Reading& reading, const std::string& prefix, const std::string& kind);

// Rotary positions and sliding windows of such a model; called by read_llama_shape.
void read_rotary(Reading& reading, const std::string& prefix, const std::string& kind);
void read_sliding_window(Reading& reading, const std::string& prefix, const std::string& kind);

// strategy.zero_stage, which nothing that is read later lowers.
void read_zero_stage(Reading& reading, const std::string& name);

// A number of devices that share something Ridgeline has no axis for: beyond it, or of no effect where it is 1.
void read_other_axis(Reading& reading, const std::string& name, int64_t width, const std::string& shares);

// Ranks that share a sequence, in the way that the other program has; returns strategy.context.
int64_t read_context(Reading& reading, const std::string& name, ContextKind kind);

// Sets config.devices to the product. Throws InputError where no machine has so many.
void set_devices(Reading& reading, std::initializer_list<int64_t> axes);

// Width of the data axis that `devices` leave to tensor * pipeline * others, 0 where the devices are not known. Throws
// InputError where they do not divide.
int64_t data_width(const Reading& reading, int64_t others = 1);

}  // namespace ridgeline::spec
