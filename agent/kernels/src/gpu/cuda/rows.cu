
// Gathering rows by index, and scattering their gradients.

// out[i] = table[ids[i]]; one block per i.
KERNEL gather_rows(const real *table, const unsigned *ids, real *out, unsigned width) {
  const real *from = table + (size_t)ids[blockIdx.x] * width;
  real *to = out + (size_t)blockIdx.x * width;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) *(uint4 *)(to + i) = *(const uint4 *)(from + i);
}

// Adds rows order[starts[u] .. starts[u + 1]] of `rows` to row ids[u] of `sums`, in this order: the result
// does not depend on the scheduling of the blocks.
KERNEL scatter_rows(const real *rows, const unsigned *order, const unsigned *starts, const unsigned *ids, float *sums,
                    unsigned width) {
  float *to = sums + (size_t)ids[blockIdx.x] * width;
  unsigned first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) {
    float sum[VEC] = {0.0f};
    for (unsigned k = first; k < end; k++) {
      float row[VEC];
      load_vec(rows + (size_t)order[k] * width + i, row);
      for (int j = 0; j < VEC; j++) sum[j] += row[j];
    }
    for (int j = 0; j < VEC; j++) to[i + j] += sum[j];
  }
}
