// The part of CUDA that the kernels use, for a C compiler. Compiled before the kernels; emulation.c comes
// after them.
//
// The threads of a block are coroutines of one thread. Each runs up to a barrier or a shuffle and then yields
// to the next one. The shared memory of a block is static, and blocks run one after the other.

#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define EMULATED
#define KERNEL static void
#define DEVICE static inline
#define __shared__ static

typedef struct {
  unsigned x, y, z;
} dim3;
typedef struct {
  unsigned x, y, z, w;
} uint4;

static dim3 threadIdx, blockIdx, blockDim, gridDim;

static float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static unsigned __float_as_uint(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define __expf expf
#define rsqrtf(x) (1.0f / sqrtf(x))

static void __syncthreads(void);
static float __shfl_xor_sync(unsigned lanes, float value, int distance);
static void atomicMin(unsigned *at, unsigned value) {
  if (value < *at) *at = value;
}
