
// Attention of single queries over the cache of a lane, with the context split among blocks: "Flash-Decoding"
// (Dao et al., 2023) with the online softmax of "FlashAttention" (arXiv 2205.14135). Block (split, kv head,
// row) reads its part of the keys and values of one key head once for all GROUP query heads that share it.
//
// KEY_THREADS threads hold one key, VEC values each, so that a warp loads WARP / KEY_THREADS whole keys with
// 16-byte loads. Every such group of threads has its own maximum, mass and sum of values; they are merged at
// the end.

#define KEY_THREADS (HEAD_DIM / VEC)
#define ATTENTION_THREADS 128
#define STREAMS (ATTENTION_THREADS / KEY_THREADS)
// Keys that a thread loads before it uses them.
#define AHEAD 2

// part_out [rows, kv_heads, splits, GROUP, HEAD_DIM] receives sums relative to the maximum of the split;
// part_stats [rows, kv_heads, splits, GROUP, 2] receives that maximum and the mass.
KERNEL attention_split(const real *q, const real *keys, const real *values, const unsigned *lanes,
                       const unsigned *positions, float *part_out, float *part_stats, unsigned capacity, float scale) {
  __shared__ float merged[STREAMS][HEAD_DIM];
  __shared__ float maxima[STREAMS], masses[STREAMS];
  unsigned kv_heads = gridDim.y, splits = gridDim.x, kv_head = blockIdx.y, row = blockIdx.z;
  unsigned length = positions[row] + 1;
  unsigned share = (length + splits - 1) / splits;
  unsigned first = blockIdx.x * share;
  unsigned end = first + share < length ? first + share : length;
  unsigned stream = threadIdx.x / KEY_THREADS, at = threadIdx.x % KEY_THREADS * VEC;

  float query[GROUP][VEC], sum[GROUP][VEC], maximum[GROUP], mass[GROUP];
#pragma unroll
  for (int g = 0; g < GROUP; g++) {
    load_vec(q + (((size_t)row * kv_heads + kv_head) * GROUP + g) * HEAD_DIM + at, query[g]);
    maximum[g] = MINUS_INFINITY;
    mass[g] = 0.0f;
#pragma unroll
    for (int j = 0; j < VEC; j++) {
      query[g][j] *= scale;
      sum[g][j] = 0.0f;
    }
  }

  size_t base = ((size_t)lanes[row] * kv_heads + kv_head) * capacity * HEAD_DIM + at;
  // The bounds are the same for all threads, so that all lanes of a warp reach the shuffles.
  for (unsigned start = first; start < end; start += STREAMS * AHEAD) {
    float k[AHEAD][VEC], v[AHEAD][VEC];
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      unsigned token = start + a * STREAMS + stream;
      unsigned safe = token < end ? token : end - 1;
      load_vec(keys + base + (size_t)safe * HEAD_DIM, k[a]);
      load_vec(values + base + (size_t)safe * HEAD_DIM, v[a]);
    }
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      unsigned token = start + a * STREAMS + stream;
#pragma unroll
      for (int g = 0; g < GROUP; g++) {
        float score = 0.0f;
#pragma unroll
        for (int j = 0; j < VEC; j++) score += query[g][j] * k[a][j];
#pragma unroll
        for (int distance = KEY_THREADS / 2; distance > 0; distance /= 2)
          score += __shfl_xor_sync(ALL_LANES, score, distance);
        if (token >= end) continue;
        float higher = fmaxf(maximum[g], score);
        float fade = __expf(maximum[g] - higher), weight = __expf(score - higher);
        maximum[g] = higher;
        mass[g] = mass[g] * fade + weight;
#pragma unroll
        for (int j = 0; j < VEC; j++) sum[g][j] = sum[g][j] * fade + weight * v[a][j];
      }
    }
  }

#pragma unroll
  for (int g = 0; g < GROUP; g++) {
    if (at == 0) {
      maxima[stream] = maximum[g];
      masses[stream] = mass[g];
    }
#pragma unroll
    for (int j = 0; j < VEC; j++) merged[stream][at + j] = sum[g][j];
    __syncthreads();
    float highest = MINUS_INFINITY;
    for (int s = 0; s < STREAMS; s++) highest = fmaxf(highest, maxima[s]);
    size_t slot = (((size_t)row * kv_heads + kv_head) * splits + blockIdx.x) * GROUP + g;
    for (unsigned d = threadIdx.x; d < HEAD_DIM; d += blockDim.x) {
      float total = 0.0f;
      // A stream without keys has the maximum −∞ and weight 0.
      for (int s = 0; s < STREAMS; s++)
        if (maxima[s] > MINUS_INFINITY) total += merged[s][d] * __expf(maxima[s] - highest);
      part_out[slot * HEAD_DIM + d] = total;
    }
    if (threadIdx.x == 0) {
      float total = 0.0f;
      for (int s = 0; s < STREAMS; s++)
        if (maxima[s] > MINUS_INFINITY) total += masses[s] * __expf(maxima[s] - highest);
      part_stats[slot * 2] = highest;
      part_stats[slot * 2 + 1] = total;
    }
    __syncthreads();
  }
}

// Merges the splits; block (query head, row). out [rows, kv_heads · GROUP, HEAD_DIM].
KERNEL attention_combine(const float *part_out, const float *part_stats, real *out, unsigned splits) {
  unsigned kv_heads = gridDim.x / GROUP, kv_head = blockIdx.x / GROUP, g = blockIdx.x % GROUP, row = blockIdx.y;
  size_t first = ((size_t)row * kv_heads + kv_head) * splits;
  float highest = MINUS_INFINITY, mass = 0.0f;
  for (unsigned s = 0; s < splits; s++) highest = fmaxf(highest, part_stats[((first + s) * GROUP + g) * 2]);
  for (unsigned s = 0; s < splits; s++) {
    const float *stats = part_stats + ((first + s) * GROUP + g) * 2;
    mass += stats[1] * __expf(stats[0] - highest);
  }
  for (unsigned d = threadIdx.x; d < HEAD_DIM; d += blockDim.x) {
    float total = 0.0f;
    for (unsigned s = 0; s < splits; s++) {
      size_t slot = (first + s) * GROUP + g;
      total += part_out[slot * HEAD_DIM + d] * __expf(part_stats[slot * 2] - highest);
    }
    out[((size_t)row * gridDim.x + blockIdx.x) * HEAD_DIM + d] = from_float(total / mass);
  }
}
