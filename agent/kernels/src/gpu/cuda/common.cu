// Definitions shared by all kernels: the number format, 16-byte loads, sums over a block.
//
// The sources use only the common subset of C11 and CUDA C++, so that a C compiler can check them and run
// them thread by thread without a GPU. The compiler options define REAL_IS_BF16, HEAD_DIM and GROUP.
//
// `real` is the format of weights and activations. All arithmetic is in float.

#ifndef EMULATED
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu
// Maximum number of warps in a block.
#define MAX_WARPS 32
// nvrtc has no header that defines it.
#define MINUS_INFINITY __uint_as_float(0xff800000u)

#if REAL_IS_BF16
typedef unsigned short real;
#define VEC 8

DEVICE float to_float(real bits) { return __uint_as_float((unsigned)bits << 16); }

// Rounds to nearest, ties to even; NaN stays NaN.
DEVICE real from_float(float value) {
  unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (real)((bits >> 16) | 0x40u);
  return (real)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#else
typedef float real;
#define VEC 4

DEVICE float to_float(real value) { return value; }

DEVICE real from_float(float value) { return value; }
#endif

// Loads VEC values from an address aligned to 16 bytes.
DEVICE void load_vec(const real *from, float *out) {
  uint4 w = *(const uint4 *)from;
#if REAL_IS_BF16
  out[0] = __uint_as_float(w.x << 16);
  out[1] = __uint_as_float(w.x & 0xffff0000u);
  out[2] = __uint_as_float(w.y << 16);
  out[3] = __uint_as_float(w.y & 0xffff0000u);
  out[4] = __uint_as_float(w.z << 16);
  out[5] = __uint_as_float(w.z & 0xffff0000u);
  out[6] = __uint_as_float(w.w << 16);
  out[7] = __uint_as_float(w.w & 0xffff0000u);
#else
  out[0] = __uint_as_float(w.x);
  out[1] = __uint_as_float(w.y);
  out[2] = __uint_as_float(w.z);
  out[3] = __uint_as_float(w.w);
#endif
}

DEVICE void store_vec(real *to, const float *in) {
  uint4 w;
#if REAL_IS_BF16
  w.x = from_float(in[0]) | (unsigned)from_float(in[1]) << 16;
  w.y = from_float(in[2]) | (unsigned)from_float(in[3]) << 16;
  w.z = from_float(in[4]) | (unsigned)from_float(in[5]) << 16;
  w.w = from_float(in[6]) | (unsigned)from_float(in[7]) << 16;
#else
  w.x = __float_as_uint(in[0]);
  w.y = __float_as_uint(in[1]);
  w.z = __float_as_uint(in[2]);
  w.w = __float_as_uint(in[3]);
#endif
  *(uint4 *)to = w;
}

DEVICE float warp_sum(float value) {
  for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
  return value;
}

DEVICE float warp_max(float value) {
  for (int distance = WARP / 2; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, distance));
  return value;
}

// The sum over all threads of a block, returned to all of them. `shared` has MAX_WARPS elements and can be
// reused immediately.
DEVICE float block_sum(float value, float *shared) {
  unsigned warps = blockDim.x / WARP;
  value = warp_sum(value);
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = value;
  __syncthreads();
  value = warp_sum(threadIdx.x % WARP < warps ? shared[threadIdx.x % WARP] : 0.0f);
  __syncthreads();
  return value;
}

DEVICE float block_max(float value, float *shared) {
  unsigned warps = blockDim.x / WARP;
  value = warp_max(value);
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = value;
  __syncthreads();
  value = warp_max(threadIdx.x % WARP < warps ? shared[threadIdx.x % WARP] : MINUS_INFINITY);
  __syncthreads();
  return value;
}
