
// Softmax of causal scores in place, one block per row of [batch · queries, context]. Query i of a block of
// `queries` that starts at position `first` attends to `first + i + 1` keys; the probability of the others is
// 0.
KERNEL causal_softmax(real *scores, unsigned queries, unsigned first, unsigned context, float scale) {
  __shared__ float shared[MAX_WARPS];
  real *row = scores + (size_t)blockIdx.x * context;
  unsigned seen = first + blockIdx.x % queries + 1;
  float highest = MINUS_INFINITY;
  for (unsigned i = threadIdx.x; i < seen; i += blockDim.x) highest = fmaxf(highest, to_float(row[i]));
  highest = block_max(highest, shared);
  float mass = 0.0f;
  for (unsigned i = threadIdx.x; i < seen; i += blockDim.x) mass += __expf((to_float(row[i]) - highest) * scale);
  float share = 1.0f / block_sum(mass, shared);
  for (unsigned i = threadIdx.x; i < context; i += blockDim.x)
    row[i] = i < seen ? from_float(__expf((to_float(row[i]) - highest) * scale) * share) : from_float(0.0f);
}

// d_scores = p (d_p − Σ d_p p) · scale; overwrites d_p.
KERNEL softmax_backward(const real *probabilities, real *d_probabilities, unsigned context, float scale) {
  __shared__ float shared[MAX_WARPS];
  size_t row = (size_t)blockIdx.x * context;
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < context; i += blockDim.x)
    sum += to_float(probabilities[row + i]) * to_float(d_probabilities[row + i]);
  sum = block_sum(sum, shared);
  for (unsigned i = threadIdx.x; i < context; i += blockDim.x) {
    float p = to_float(probabilities[row + i]), d = to_float(d_probabilities[row + i]);
    d_probabilities[row + i] = from_float(p * (d - sum) * scale);
  }
}
