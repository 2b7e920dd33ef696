
// SwiGLU on rows of gate ‖ up: gate · sigmoid(gate) · up. VEC values per thread.

DEVICE float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

KERNEL swiglu(const real *gate_up, real *out, unsigned rows, unsigned width) {
  size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * VEC;
  if (i >= (size_t)rows * width) return;
  const real *gates = gate_up + i / width * 2 * width + i % width;
  float gate[VEC], up[VEC];
  load_vec(gates, gate);
  load_vec(gates + width, up);
  for (int j = 0; j < VEC; j++) gate[j] *= sigmoid(gate[j]) * up[j];
  store_vec(out + i, gate);
}

// With s = sigmoid(gate): d_up = d_out gate s and d_gate = d_out up s (1 + gate (1 − s)).
KERNEL swiglu_backward(const real *gate_up, const real *d_out, real *d_gate_up, unsigned rows, unsigned width) {
  size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * VEC;
  if (i >= (size_t)rows * width) return;
  size_t at = i / width * 2 * width + i % width;
  float gate[VEC], up[VEC], d[VEC];
  load_vec(gate_up + at, gate);
  load_vec(gate_up + at + width, up);
  load_vec(d_out + i, d);
  for (int j = 0; j < VEC; j++) {
    float s = sigmoid(gate[j]);
    float d_up = d[j] * gate[j] * s;
    gate[j] = d[j] * up[j] * s * (1.0f + gate[j] * (1.0f - s));
    up[j] = d_up;
  }
  store_vec(d_gate_up + at, gate);
  store_vec(d_gate_up + at + width, up);
}
