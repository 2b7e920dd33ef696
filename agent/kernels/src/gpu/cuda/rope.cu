
// Rotary positions on rows of q ‖ k ‖ v: value i of the first half of a head and value i of its second half
// are rotated by the angle of their position. `cos` and `sin` hold HEAD_DIM/2 values per position. One block
// per row.

#define HALF (HEAD_DIM / 2)

DEVICE float biased(const real *qkv, const real *bias, size_t row, unsigned col) {
  float value = to_float(qkv[row + col]);
  return bias ? to_float(from_float(value + to_float(bias[col]))) : value;
}

// Adds the bias, if given, and rotates q and k forward (direction 1) or backward (−1); v is copied.
KERNEL rope_rows(const real *qkv, const real *bias, const float *cos, const float *sin, const unsigned *positions,
                 real *out, unsigned turned_heads, unsigned heads, float direction) {
  size_t row = (size_t)blockIdx.x * heads * HEAD_DIM;
  size_t angle = (size_t)positions[blockIdx.x] * HALF;
  for (unsigned pair = threadIdx.x; pair < heads * HALF; pair += blockDim.x) {
    unsigned i = pair % HALF, col = pair / HALF * HEAD_DIM + i;
    float a = biased(qkv, bias, row, col), b = biased(qkv, bias, row, col + HALF);
    float c = 1.0f, s = 0.0f;
    if (pair / HALF < turned_heads) {
      c = cos[angle + i];
      s = sin[angle + i] * direction;
    }
    out[row + col] = from_float(a * c - b * s);
    out[row + col + HALF] = from_float(b * c + a * s);
  }
}

// Like rope_rows forward, but q is written to its own rows, and k and v to their positions in the cache
// [lanes, kv_heads, capacity, HEAD_DIM].
KERNEL rope_append(const real *qkv, const real *bias, const float *cos, const float *sin, const unsigned *lanes,
                   const unsigned *positions, real *q_out, real *keys, real *values, unsigned q_heads,
                   unsigned kv_heads, unsigned capacity) {
  unsigned heads = q_heads + 2 * kv_heads;
  size_t row = (size_t)blockIdx.x * heads * HEAD_DIM;
  unsigned position = positions[blockIdx.x];
  size_t angle = (size_t)position * HALF;
  for (unsigned pair = threadIdx.x; pair < heads * HALF; pair += blockDim.x) {
    unsigned head = pair / HALF, i = pair % HALF, col = head * HEAD_DIM + i;
    float a = biased(qkv, bias, row, col), b = biased(qkv, bias, row, col + HALF);
    float c = 1.0f, s = 0.0f;
    real *to;
    if (head < q_heads) {
      to = q_out + ((size_t)blockIdx.x * q_heads + head) * HEAD_DIM;
    } else {
      unsigned kv_head = (head - q_heads) % kv_heads;
      real *cache = head < q_heads + kv_heads ? keys : values;
      to = cache + (((size_t)lanes[blockIdx.x] * kv_heads + kv_head) * capacity + position) * HEAD_DIM;
    }
    if (head < q_heads + kv_heads) {
      c = cos[angle + i];
      s = sin[angle + i];
    }
    to[i] = from_float(a * c - b * s);
    to[i + HALF] = from_float(b * c + a * s);
  }
}
