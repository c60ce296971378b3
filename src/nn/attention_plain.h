// Attention as the formula has it, with scores in memory: the reference of the fused kernels, and the path for dropout on
// probabilities. Memory: micro_batch * heads * queries * keys elements.
#pragma once

#include "nn/attention.h"

namespace ridgeline::nn {

AttentionOutput plain_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const AttentionPattern& pattern);
AttentionGradients plain_attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const AttentionOutput& forward,
                                            const AttentionPattern& pattern);

}  // namespace ridgeline::nn
