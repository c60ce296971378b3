// Recipe: how a training program runs a step, where programs differ: which attention, what "selective" recomputes, what
// it keeps of a parameter, what it reduces and when. A prediction for a run of another program needs that program's
// recipe; the model's formulas are shared.
//
// Static bytes of a parameter are `bytes_fixed + bytes_sharded / data` with a sharded optimizer, else their sum. From
// ZeRO-2 on, what is above the weights in bytes_fixed is divided too (gradients), from ZeRO-3 on the weights.
//   megatron         Megatron-LM of 2021-22: 16-bit weights 2, main gradients 4, fp32 master and moments 12
//   deepspeed        Megatron-DeepSpeed with fp16 ZeRO-1: weights 2; master, moments 12 and gradients 2 in shards. Its
//                    peak holds the unsharded 16-bit gradients and a bucket of 5e8 elements beside (DeepSpeed's
//                    reduce_bucket_size). Seen in the log of 175B on Frontier (validation/memory.csv).
//   deepspeed-bf16   its bf16 optimizer: weights 2, gradients 2 and 4; 12 in shards. Seen in the log of LUMI.
//   megatron-core    Megatron-Core of 2023 on with Transformer Engine: fused attention, loss fused with the logits. Its
//                    peak holds gradients of weights on their way and, under sequence parallelism, four whole rows of the
//                    residual stream: seen in SimuMax's six slices of Llama on B200, to 0.3 % of each
//   nemo             the same with all that it can hide beside compute hidden (NeMo, Megatron-Bridge, NVIDIA's MLPerf runs)
//   ridgeline        this program: cost/memory.h
#pragma once

#include <string>

#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::cost {

struct Recipe {
  std::string name = "ridgeline";
  bool fused_attention = true;          // scores are never written to memory; else they are, with softmax between
  bool selective_is_attention = false;  // "selective" recomputes scores and softmax; else outputs of norms and GELU
  double bytes_fixed = 6;
  double bytes_sharded = 12;
  double gradient_bytes = 4;               // of an element, as reduced over the data axis
  double parameter_bytes = 2;              // of an element, as gathered from the shards
  bool shards_always = false;              // the optimizer is sharded whatever zero_stage says
  bool reduces_while_backward = true;      // gradient buckets are reduced beside the last micro-batch's backward
  bool hides_tensor_backward = false;      // all-reduce of the input's gradient runs beside the weights' gradient
  bool hides_tensor_forward = false;       // gathers and sums of the forward run beside the product next to them
  bool hides_messages = false;             // interleaved: messages run beside another chunk's work
  bool gathers_while_forward = false;      // parameters are gathered from their shards beside the next forward
  bool scatters_messages = true;           // a message between stages is cut over the tensor axis and gathered again
  bool fills_stages = false;               // stages hold ceil(layers / stages) layers, the last one what is left
  bool keeps_unsharded_gradients = false;  // at the peak, beside the shards
  bool keeps_masks = false;                // of dropout, a byte an element; here they are counters
  bool keeps_message_slices = false;       // of 1/tensor, for each micro-batch, where messages are scattered
  bool counts_transients = true;           // gradients on their way through a layer; published accounts leave them out
  bool keeps_weight_gradients = false;     // of a layer's MLP at work: fp32 of its widest matrix, 16 bits of the other
  bool has_working_buffer = true;          // ZeRO-2 and -3: units at work are whole in a buffer that they take turns in
  bool chunks_logits = true;               // logits never exist whole; else they do, with their gradient, in fp32
  bool fp8_products = false;           // products of the layers' weights are in 8 bits, operands cast before each
  double bucket_elements = 0;  // of a reduction buffer beside the gradients
};

Recipe recipe(const std::string& program);  // throws InputError that lists the names

// `strategy` with the stages that the recipe's program would make.
spec::Strategy with_stages(spec::Strategy strategy, const spec::ModelSpec& model, const Recipe& recipe);

}  // namespace ridgeline::cost
