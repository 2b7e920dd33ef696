
// Rows picked by index, and their gradients put back.

// out[i] = table[ids[i]], a block for each i.
KERNEL gather_rows(const real *table, const unsigned *ids, real *out, unsigned width) {
  const real *from = table + (size_t)ids[blockIdx.x] * width;
  real *to = out + (size_t)blockIdx.x * width;
  for (unsigned i = threadIdx.x * VEC; i < width; i += blockDim.x * VEC) *(uint4 *)(to + i) = *(const uint4 *)(from + i);
}

// Adds to row ids[u] of `sums` the rows order[starts[u] .. starts[u + 1]] of `rows`, in this order, so that
// the result does not depend on which block runs first.
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
