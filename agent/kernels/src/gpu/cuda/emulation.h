// What of CUDA the kernels use, for a C compiler: read before them, with emulation.c after them.
//
// The threads of a block are coroutines of one thread. Each runs until it meets others, at a barrier or a
// shuffle, and then lets the next one run. A block's shared memory is static, and blocks run one after the
// other.

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
