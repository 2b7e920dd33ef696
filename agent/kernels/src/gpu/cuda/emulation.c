
// The coroutines behind emulation.h, and a main loop that runs the kernels requested on standard input.

#define MAX_THREADS 1024
#define STACK_BYTES (64 * 1024)
// Number of guard bytes before and after the memory of each argument, and their value: a change means that
// the kernel wrote out of bounds.
#define FENCE_BYTES 64
#define FENCE 0xa5
#define MAX_ARGS 20

// Each coroutine is started once with setcontext and is reused for all blocks. Switches between started
// coroutines use longjmp, which, unlike swapcontext, makes no system call.
static ucontext_t beginnings[MAX_THREADS];
static jmp_buf pauses[MAX_THREADS], block_end;
static char stacks[MAX_THREADS][STACK_BYTES];
static int has_begun[MAX_THREADS], is_done[MAX_THREADS];
// What each lane gives to its last two shuffles.
static float shuffled[2][MAX_THREADS];
static unsigned n_shuffles[MAX_THREADS];
// `order` is added to `current` for the thread that runs next: 1, or blockDim.x - 1 for descending order.
static unsigned current, order, n_running, arrived, generation;

static void die(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

static void thread_main(void);

// Goes on with the next thread of the block that has not ended.
static void run_next(void) {
  if (n_running == 0) _longjmp(block_end, 1);
  do {
    current += order;
    if (current >= blockDim.x) current -= blockDim.x;
  } while (is_done[current]);
  if (has_begun[current]) _longjmp(pauses[current], 1);
  has_begun[current] = 1;
  getcontext(&beginnings[current]);
  beginnings[current].uc_stack.ss_sp = stacks[current];
  beginnings[current].uc_stack.ss_size = STACK_BYTES;
  makecontext(&beginnings[current], thread_main, 0);
  setcontext(&beginnings[current]);
}

// Returns when all other threads of the block have run up to a pause or to their end.
static void let_others_run(void) {
  if (!_setjmp(pauses[current])) run_next();
  threadIdx.x = current;
}

static void __syncthreads(void) {
  unsigned mine = generation;
  if (++arrived == blockDim.x) {
    arrived = 0;
    generation++;
  }
  while (generation == mine) let_others_run();
}

// All lanes of a warp must take part. A lane that gives a value to one shuffle has read that of the shuffle
// before, so that after the pause all lanes have, and the shuffle after this one may overwrite those.
static float __shfl_xor_sync(unsigned lanes, float value, int distance) {
  if (lanes != ALL_LANES) die("a shuffle among some lanes only is not emulated");
  float *values = shuffled[n_shuffles[current]++ % 2];
  values[current] = value;
  let_others_run();
  return values[current ^ (unsigned)distance];
}

typedef struct {
  char kind; // 'i' memory to read, 'o' memory to write, '0' none, 'u' unsigned, 'f' float
  uint64_t size;
  char *memory;
  uint32_t word;
} Arg;

static Arg args[MAX_ARGS];
static unsigned n_args;

static void *pointer(unsigned i) { return args[i].kind == '0' ? NULL : args[i].memory + FENCE_BYTES; }
static float number(unsigned i) { return __uint_as_float(args[i].word); }

#define P(i) pointer(i)
#define U(i) args[i].word
#define F(i) number(i)

// Each kernel with its parameter kinds ('p' for any memory) and its call.
#define KERNELS(X)                                                                                                     \
  X(add_rms_norm, "pppppuf", (P(0), P(1), P(2), P(3), P(4), U(5), F(6)))                                               \
  X(rms_norm_backward, "ppppppuf", (P(0), P(1), P(2), P(3), P(4), P(5), U(6), F(7)))                                   \
  X(column_sums, "ppppuuu", (P(0), P(1), P(2), P(3), U(4), U(5), U(6)))                                                \
  X(rope_rows, "ppppppuuf", (P(0), P(1), P(2), P(3), P(4), P(5), U(6), U(7), F(8)))                                    \
  X(rope_append, "pppppppppuuu", (P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), U(9), U(10), U(11)))           \
  X(attention_split, "pppppppuf", (P(0), P(1), P(2), P(3), P(4), P(5), P(6), U(7), F(8)))                              \
  X(attention_combine, "pppu", (P(0), P(1), P(2), U(3)))                                                               \
  X(causal_softmax, "puuuf", (P(0), U(1), U(2), U(3), F(4)))                                                           \
  X(softmax_backward, "ppuf", (P(0), P(1), U(2), F(3)))                                                                \
  X(swiglu, "ppuu", (P(0), P(1), U(2), U(3)))                                                                          \
  X(swiglu_backward, "pppuu", (P(0), P(1), P(2), U(3), U(4)))                                                          \
  X(gather_rows, "pppu", (P(0), P(1), P(2), U(3)))                                                                     \
  X(scatter_rows, "pppppu", (P(0), P(1), P(2), P(3), P(4), U(5)))                                                      \
  X(token_stats, "pppppu", (P(0), P(1), P(2), P(3), P(4), U(5)))                                                       \
  X(shape_logits, "pppuff", (P(0), P(1), P(2), U(3), F(4), F(5)))                                                      \
  X(logits_backward, "pppppu", (P(0), P(1), P(2), P(3), P(4), U(5)))                                                   \
  X(draw_tokens, "pppppuf", (P(0), P(1), P(2), P(3), P(4), U(5), F(6)))                                                \
  X(adamw, "pppppufffffffff",                                                                                          \
    (P(0), P(1), P(2), P(3), P(4), U(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14)))                   \
  X(squares, "ppu", (P(0), P(1), U(2)))

#define CALL(name, kinds, call)                                                                                        \
  static void call_##name(void) { name call; }
KERNELS(CALL)

static const struct {
  const char *name, *kinds;
  void (*call)(void);
} kernels[] = {
#define ENTRY(name, kinds, call) {#name, kinds, call_##name},
    KERNELS(ENTRY)};

static void (*kernel)(void);

static void thread_main(void) {
  for (;;) {
    threadIdx.x = current;
    kernel();
    is_done[current] = 1;
    n_running--;
    let_others_run();
  }
}

// Runs a block, its threads in ascending or descending order: with a missing barrier the results differ.
static void run_block(int descending) {
  arrived = 0;
  memset(is_done, 0, sizeof is_done);
  n_running = blockDim.x;
  order = descending ? blockDim.x - 1 : 1;
  current = descending ? 0 : blockDim.x - 1;
  if (!_setjmp(block_end)) run_next();
}

static void take(void *to, size_t size) {
  if (fread(to, 1, size, stdin) != size) die("the request ends early");
}

static void read_arg(Arg *arg) {
  take(&arg->kind, 1);
  if (arg->kind == 'u' || arg->kind == 'f') take(&arg->word, 4);
  if (arg->kind != 'i' && arg->kind != 'o') return;
  take(&arg->size, 8);
  // Aligned at least as strictly as by the allocator of the GPU.
  arg->memory = aligned_alloc(FENCE_BYTES, (2 * FENCE_BYTES + arg->size + FENCE_BYTES - 1) / FENCE_BYTES * FENCE_BYTES);
  memset(arg->memory, FENCE, FENCE_BYTES);
  take(arg->memory + FENCE_BYTES, arg->size);
  memset(arg->memory + FENCE_BYTES + arg->size, FENCE, FENCE_BYTES);
}

static void finish_arg(Arg *arg) {
  if (arg->kind != 'i' && arg->kind != 'o') return;
  for (unsigned i = 0; i < FENCE_BYTES; i++) {
    unsigned char before = arg->memory[i], after = arg->memory[FENCE_BYTES + arg->size + i];
    if (before != FENCE || after != FENCE) die("a kernel wrote outside of an argument");
  }
  if (arg->kind == 'o') fwrite(arg->memory + FENCE_BYTES, 1, arg->size, stdout);
  free(arg->memory);
}

static int fits(const char *kinds) {
  if (strlen(kinds) != n_args) return 0;
  for (unsigned i = 0; i < n_args; i++) {
    int is_memory = strchr("io0", args[i].kind) != NULL;
    if (kinds[i] == 'p' ? !is_memory : kinds[i] != args[i].kind) return 0;
  }
  return 1;
}

// Request: length of the name, name, grid (x, y, z), threads, order (1: descending), number of arguments,
// arguments. Response: the contents of the output arguments.
int main(void) {
  uint32_t length;
  while (fread(&length, 1, 4, stdin) == 4) {
    char name[64] = {0};
    uint32_t head[6];
    if (length >= sizeof name) die("the name is too long");
    take(name, length);
    take(head, sizeof head);
    gridDim = (dim3){head[0], head[1], head[2]};
    blockDim = (dim3){head[3], 1, 1};
    n_args = head[5];
    if (n_args > MAX_ARGS || head[3] > MAX_THREADS || head[3] % WARP) die("too many arguments or a bad block");
    for (unsigned i = 0; i < n_args; i++) read_arg(&args[i]);
    kernel = NULL;
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++)
      if (strcmp(kernels[i].name, name) == 0 && fits(kernels[i].kinds)) kernel = kernels[i].call;
    if (!kernel) die("no kernel of this name takes these arguments");
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
      for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) run_block((int)head[4]);
    for (unsigned i = 0; i < n_args; i++) finish_arg(&args[i]);
    fflush(stdout);
  }
  return 0;
}
