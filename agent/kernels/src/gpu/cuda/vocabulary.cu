
// Softmax over the vocabulary: the log-probability of a target, its gradient, and sampling. Logits are f32
// [rows, vocabulary], one block per row; a NaN among them propagates to the results.

// Replaces logits by those of the sampled distribution: divided by the temperature, relative to the maximum,
// and −∞ outside the nucleus, except for the target. `outside` is 1 if the target is not in the nucleus.
KERNEL shape_logits(float *logits, const unsigned *targets, float *outside, unsigned vocabulary, float temperature,
                    float top_p) {
  __shared__ float shared[MAX_WARPS];
  float *row = logits + (size_t)blockIdx.x * vocabulary;
  float highest = MINUS_INFINITY;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) highest = fmaxf(highest, row[i]);
  highest = block_max(highest, shared);
  float mass = 0.0f;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    row[i] = (row[i] - highest) / temperature;
    mass += __expf(row[i]);
  }
  mass = block_sum(mass, shared);
  // The largest weight such that the tokens of at least this weight hold the mass `enough`. Weights are at
  // most 1.0, whose highest bit is bit 29. If the mass is NaN, all tokens are kept.
  float enough = top_p < 1.0f ? top_p * mass : 0.0f;
  unsigned end = 0;
  for (unsigned bit = 1u << 29; top_p < 1.0f && bit > 0; bit >>= 1) {
    float held = 0.0f;
    for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
      float weight = __expf(row[i]);
      if (__float_as_uint(weight) >= (end | bit)) held += weight;
    }
    if (block_sum(held, shared) >= enough) end |= bit;
  }
  // Among the tokens of exactly this weight, those with ids up to `last` are kept.
  float above = 0.0f, ties = 0.0f;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    float weight = __expf(row[i]);
    if (__float_as_uint(weight) > end) above += weight;
    if (__float_as_uint(weight) == end) ties += 1.0f;
  }
  above = block_sum(above, shared);
  ties = block_sum(ties, shared);
  float wanted = fmaxf(ceilf((enough - above) / __uint_as_float(end)), 1.0f);
  unsigned last = vocabulary;
  if (end > 0 && wanted < ties) {
    last = 0;
    for (unsigned bit = 1u << 30; bit > 0; bit >>= 1) {
      float before = 0.0f;
      for (unsigned i = threadIdx.x; i < vocabulary && i < (last | bit); i += blockDim.x)
        if (__float_as_uint(__expf(row[i])) == end) before += 1.0f;
      if (block_sum(before, shared) < wanted) last |= bit;
    }
  }
  unsigned target = targets[blockIdx.x];
  if (threadIdx.x == 0) outside[blockIdx.x] = 0.0f;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    unsigned weight = __float_as_uint(__expf(row[i]));
    if (weight > end || (weight == end && i <= last)) continue;
    if (i == target) outside[blockIdx.x] = 1.0f;
    else row[i] = MINUS_INFINITY;
  }
}

// log p(target), entropy −Σ p log p, and log Σ exp(logit).
KERNEL token_stats(const float *logits, const unsigned *targets, float *log_probs, float *entropies, float *log_sums,
                   unsigned vocabulary) {
  __shared__ float shared[MAX_WARPS];
  const float *row = logits + (size_t)blockIdx.x * vocabulary;
  float highest = MINUS_INFINITY;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) highest = fmaxf(highest, row[i]);
  highest = block_max(highest, shared);
  float mass = 0.0f, moment = 0.0f;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    float relative = row[i] - highest, weight = __expf(relative);
    mass += weight;
    // 0 · −∞ counts as 0, its limit.
    if (weight > 0.0f || isnan(weight)) moment += weight * relative;
  }
  mass = block_sum(mass, shared);
  moment = block_sum(moment, shared);
  if (threadIdx.x == 0) {
    float log_mass = logf(mass);
    log_probs[blockIdx.x] = row[targets[blockIdx.x]] - highest - log_mass;
    entropies[blockIdx.x] = log_mass - moment / mass;
    log_sums[blockIdx.x] = highest + log_mass;
  }
}

// out = d (1[target] − p), the gradient of d · log p(target) with respect to the logits.
KERNEL logits_backward(const float *logits, const unsigned *targets, const float *log_sums, const float *d_log_probs,
                       real *out, unsigned vocabulary) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (i >= vocabulary) return;
  size_t at = (size_t)row * vocabulary + i;
  float hit = i == targets[row] ? 1.0f : 0.0f;
  out[at] = from_float(d_log_probs[row] * (hit - __expf(logits[at] - log_sums[row])));
}

#define TILE 1024
// Tiles of the largest supported vocabulary, 512 · 1024 tokens.
#define MAX_TILES 512

// Samples one token per row from softmax(logits / temperature): the first, in order of id, whose cumulative
// mass exceeds uniform · mass. At temperature 0 the most probable one, ties by the lower id. The
// log-probability is NaN if any logit is not finite. A block has TILE threads.
KERNEL draw_tokens(const float *logits, const float *uniforms, unsigned *ids, float *log_probs, float *entropies,
                   unsigned vocabulary, float temperature) {
  __shared__ float shared[MAX_WARPS], tiles[MAX_TILES], weights[TILE];
  __shared__ unsigned chosen;
  const float *row = logits + (size_t)blockIdx.x * vocabulary;
  float highest = MINUS_INFINITY, poison = 0.0f;
  for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    highest = fmaxf(highest, row[i]);
    poison += row[i] * 0.0f;
  }
  highest = block_max(highest, shared);
  poison = block_sum(poison, shared);
  if (threadIdx.x == 0) chosen = vocabulary - 1;
  __syncthreads();
  if (temperature == 0.0f) {
    for (unsigned i = threadIdx.x; i < vocabulary; i += blockDim.x)
      if (row[i] == highest) atomicMin(&chosen, i);
    __syncthreads();
    if (threadIdx.x == 0) {
      ids[blockIdx.x] = chosen;
      log_probs[blockIdx.x] = poison;
      entropies[blockIdx.x] = 0.0f;
    }
    return;
  }
  float mass = 0.0f, moment = 0.0f;
  unsigned n_tiles = (vocabulary + TILE - 1) / TILE;
  for (unsigned tile = 0; tile < n_tiles; tile++) {
    unsigned i = tile * TILE + threadIdx.x;
    float relative = i < vocabulary ? (row[i] - highest) / temperature : MINUS_INFINITY;
    float weight = __expf(relative);
    if (weight > 0.0f || isnan(weight)) moment += weight * relative;
    float sum = block_sum(weight, shared);
    if (threadIdx.x == 0) tiles[tile] = sum;
    mass += sum;
  }
  moment = block_sum(moment, shared);
  // Thread 0 finds the tile; it is the last one if rounding leaves a remainder.
  __shared__ unsigned tile_at;
  __shared__ float before;
  if (threadIdx.x == 0) {
    float wanted = uniforms[blockIdx.x] * mass, running = 0.0f;
    unsigned tile = 0;
    while (tile + 1 < n_tiles && running + tiles[tile] <= wanted) running += tiles[tile++];
    while (tile > 0 && tiles[tile] <= 0.0f) running -= tiles[--tile];
    tile_at = tile;
    before = wanted - running;
  }
  __syncthreads();
  unsigned mine = tile_at * TILE + threadIdx.x;
  weights[threadIdx.x] = mine < vocabulary ? __expf((row[mine] - highest) / temperature) : 0.0f;
  float group = warp_sum(weights[threadIdx.x]);
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = group;
  __syncthreads();
  if (threadIdx.x == 0) {
    float running = 0.0f;
    unsigned warp = 0;
    while (warp + 1 < MAX_WARPS && running + shared[warp] <= before) running += shared[warp++];
    // Tokens of weight 0 are never chosen: if rounding leaves a remainder, the last positive weight of the tile is taken.
    unsigned last = warp * WARP;
    while (last > 0 && weights[last] <= 0.0f) last--;
    for (unsigned i = warp * WARP; i < TILE; i++) {
      if (weights[i] <= 0.0f) continue;
      last = i;
      running += weights[i];
      if (running > before) break;
    }
    unsigned id = tile_at * TILE + last;
    float log_mass = logf(mass);
    ids[blockIdx.x] = id;
    log_probs[blockIdx.x] = (row[id] - highest) / temperature - log_mass + poison;
    entropies[blockIdx.x] = log_mass - moment / mass;
  }
}
