
// AdamW ("Decoupled Weight Decay Regularization", arXiv 1711.05101, algorithm 2) on f32 master weights and
// moments. The copy of the weights in the compute format is written in the same pass.
//   g = scale · gradient;  m = b1 m + c1 g;  v = b2 v + c2 g²
//   w = keep · w − rate · m / (sqrt(v) · correction + eps)
KERNEL adamw(float *parameter, float *first, float *second, const float *gradient, real *copy, unsigned n, float scale,
             float keep, float rate, float correction, float b1, float c1, float b2, float c2, float eps) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float g = scale * gradient[i];
    float m = b1 * first[i] + c1 * g, v = b2 * second[i] + c2 * g * g;
    float w = keep * parameter[i] - rate * m / (sqrtf(v) * correction + eps);
    first[i] = m;
    second[i] = v;
    parameter[i] = w;
    if (copy) copy[i] = from_float(w);
  }
}

// Partial sums of squares, one per block; the host adds them in f64, in order.
KERNEL squares(const float *values, float *partial, unsigned n) {
  __shared__ float shared[MAX_WARPS];
  float sum = 0.0f;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += values[i] * values[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
