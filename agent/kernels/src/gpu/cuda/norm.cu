
// RMSNorm: y = x / sqrt(mean(x²) + eps) · gain; one block per row, VEC values per thread and step.

// If `delta` is given, x + delta is rounded, stored to `sum`, and then normalized.
KERNEL add_rms_norm(const real *x, const real *delta, const real *gain, real *sum, real *out, unsigned width,
                    float eps) {
  __shared__ float shared[MAX_WARPS];
  size_t row = (size_t)blockIdx.x * width;
  float squares = 0.0f;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) {
    float a[VEC];
    load_vec(x + row + i, a);
    if (delta) {
      float b[VEC];
      load_vec(delta + row + i, b);
      for (int j = 0; j < VEC; j++) a[j] = to_float(from_float(a[j] + b[j]));
      store_vec(sum + row + i, a);
    }
    for (int j = 0; j < VEC; j++) squares += a[j] * a[j];
  }
  float inverse = rsqrtf(block_sum(squares, shared) / width + eps);
  // Each thread reads only values that it wrote itself.
  const real *from = delta ? sum : x;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) {
    float a[VEC], w[VEC];
    load_vec(from + row + i, a);
    load_vec(gain + i, w);
    for (int j = 0; j < VEC; j++) a[j] *= inverse * w[j];
    store_vec(out + row + i, a);
  }
}

// With r = 1/rms and g = d_out · gain: d_x = d_residual + r g − x r³ (g·x)/width. `inverses` receives r, for
// the gradient of the gain.
KERNEL rms_norm_backward(const real *x, const real *gain, const real *d_out, const real *d_residual, real *d_x,
                         float *inverses, unsigned width, float eps) {
  __shared__ float shared[MAX_WARPS];
  size_t row = (size_t)blockIdx.x * width;
  float squares = 0.0f, along = 0.0f;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) {
    float a[VEC], w[VEC], d[VEC];
    load_vec(x + row + i, a);
    load_vec(gain + i, w);
    load_vec(d_out + row + i, d);
    for (int j = 0; j < VEC; j++) {
      squares += a[j] * a[j];
      along += d[j] * w[j] * a[j];
    }
  }
  float inverse = rsqrtf(block_sum(squares, shared) / width + eps);
  float pull = block_sum(along, shared) / width * inverse * inverse * inverse;
  if (threadIdx.x == 0) inverses[blockIdx.x] = inverse;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) {
    float a[VEC], w[VEC], d[VEC], residual[VEC];
    load_vec(x + row + i, a);
    load_vec(gain + i, w);
    load_vec(d_out + row + i, d);
    load_vec(d_residual + row + i, residual);
    for (int j = 0; j < VEC; j++) a[j] = residual[j] + d[j] * w[j] * inverse - a[j] * pull;
    store_vec(d_x + row + i, a);
  }
}

// Column sums over chunks of `rows_each` rows: row blockIdx.y of `partial` is the sum of chunk blockIdx.y.
// With `x` and `inverses` the addends are d_out · x · inverse (gradient of a gain), without them d_out
// (gradient of a bias).
KERNEL column_sums(const real *d_out, const real *x, const float *inverses, float *partial, unsigned rows,
                   unsigned width, unsigned rows_each) {
  unsigned col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= width) return;
  unsigned first = blockIdx.y * rows_each;
  unsigned end = first + rows_each < rows ? first + rows_each : rows;
  float sum = 0.0f;
  for (unsigned row = first; row < end; row++) {
    size_t at = (size_t)row * width + col;
    float d = to_float(d_out[at]);
    sum += x ? d * to_float(x[at]) * inverses[row] : d;
  }
  partial[(size_t)blockIdx.y * width + col] = sum;
}
