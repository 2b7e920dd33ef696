#!/usr/bin/env python3
"""Computes the least time of each operation of the GPU backend: bytes moved and floating-point operations, nothing measured.

    scripts/gpu_floors.py [SHAPE…] [--batch N] [--context N] [--bandwidth TB/S] [--flops TFLOP/S] [--launch US]

Prints one table for a decoding step and one for a training step of 64 sequences per SHAPE (0.5b, 1.5b, 3b; default all).
Operations and operands are those of agent/lm/src/qwen2/gpu/decode.rs and pass.rs, in bf16. `floor` is the larger of
bytes / bandwidth and operations / rate; `launches` is the number of kernels, each of which costs the host --launch microseconds.
"""

import argparse
from dataclasses import dataclass

SHAPES = {  # hidden, inner, layers, query heads; all have two key/value heads and a tied head
    "0.5b": (896, 4864, 24, 14),
    "1.5b": (1536, 8960, 28, 12),
    "3b": (2048, 11_008, 36, 16),
}
KV_HEADS, VOCABULARY = 2, 151_936
BF16, F32 = 2, 4
# Of agent/lm/src/ops/gpu/decode_attention.rs: blocks that fill the GPU, least keys of a split.
TARGET_BLOCKS, KEYS_PER_SPLIT = 528, 64


@dataclass
class Operation:
    name: str
    launches: int
    bytes: float
    flops: float


def linear(name, rows, n_in, n_out, times, out_bytes=BF16):
    moved = BF16 * (n_in * n_out + rows * n_in) + out_bytes * rows * n_out
    return Operation(name, times, times * moved, times * 2 * rows * n_in * n_out)


def rowwise(name, values, times, launches=1):
    """An operation that reads or writes so many values of activations and computes next to nothing."""
    return Operation(name, times * launches, times * BF16 * values, 0)


def decoding(shape, batch, context):
    hidden, inner, layers, heads = SHAPES[shape]
    width = hidden // heads
    qkv = (heads + 2 * KV_HEADS) * width
    splits = max(1, min(-(-TARGET_BLOCKS // (batch * KV_HEADS)), -(-context // KEYS_PER_SPLIT)))
    partial = F32 * batch * heads * splits * (width + 2)
    cache = BF16 * batch * context * 2 * KV_HEADS * width
    attention_flops = 4 * batch * context * heads * width
    return [
        rowwise("gather_rows", 2 * batch * hidden, 1),
        rowwise("rms_norm, first", 2 * batch * hidden, 1),
        linear("product qkv", batch, hidden, qkv, layers),
        rowwise("rope_append", 2 * batch * qkv, layers),
        Operation("attention_split", layers, layers * (cache + partial), layers * attention_flops),
        Operation("attention_combine", layers, layers * (partial + BF16 * batch * hidden), 0),
        linear("product o", batch, hidden, hidden, layers),
        rowwise("add_rms_norm", 4 * batch * hidden, 2 * layers),
        linear("product gate, up", batch, hidden, 2 * inner, layers),
        rowwise("swiglu", 3 * batch * inner, layers),
        linear("product down", batch, inner, hidden, layers),
        linear("product head", batch, hidden, VOCABULARY, 1, F32),
        Operation("draw_tokens", 1, F32 * batch * VOCABULARY, 0),
    ]


def training(shape, sequences, length):
    """Forward, and backward with each layer computed again: each product runs four times, two of them for gradients."""
    hidden, inner, layers, heads = SHAPES[shape]
    width = hidden // heads
    qkv = (heads + 2 * KV_HEADS) * width
    rows = sequences * length

    def product(name, n_in, n_out, times):
        forward = linear(name, rows, n_in, n_out, 2 * times)
        d_input = linear(name, rows, n_out, n_in, times)
        # The gradient of the weight is read and written in f32.
        moved = BF16 * rows * (n_in + n_out) + 2 * F32 * n_in * n_out
        parts = (forward, d_input, Operation(name, times, times * moved, times * 2 * rows * n_in * n_out))
        return Operation(name, 4 * times, sum(p.bytes for p in parts), sum(p.flops for p in parts))

    # Causal: half of the keys. Scores and values, forward twice, and five products backward.
    attention = layers * sequences * length**2 / 2 * heads * width * 2 * (2 * 2 + 5)
    return [
        product("products qkv", hidden, qkv, layers),
        Operation("attention", 9 * layers * sequences, layers * BF16 * rows * 9 * qkv, attention),
        product("products o", hidden, hidden, layers),
        product("products gate, up", hidden, 2 * inner, layers),
        product("products down", inner, hidden, layers),
        rowwise("norms, rope, swiglu", rows * (20 * hidden + 6 * qkv + 9 * inner), layers, 12),
        product("products head", hidden, VOCABULARY, 1),
        Operation("token_stats, d_logits", 4, rows * VOCABULARY * (3 * F32 + BF16), 0),
    ]


def table(title, operations, options):
    bandwidth, rate = options.bandwidth * 1e12, options.flops * 1e12
    print(f"\n{title}\n\n| operation | launches | MB | GFLOP | floor, µs |\n| --- | ---: | ---: | ---: | ---: |")
    total = 0.0
    for of in operations:
        floor = max(of.bytes / bandwidth, of.flops / rate) * 1e6
        total += floor
        print(f"| {of.name} | {of.launches:,} | {of.bytes / 1e6:,.1f} | {of.flops / 1e9:,.1f} | {floor:,.1f} |")
    launches = sum(of.launches for of in operations)
    sums = sum(of.bytes for of in operations) / 1e6, sum(of.flops for of in operations) / 1e9
    print(f"| **all** | {launches:,} | {sums[0]:,.1f} | {sums[1]:,.1f} | {total:,.1f} |")
    print(f"\nLaunching one by one takes {launches * options.launch:,.0f} µs of the host.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--batch", type=int, default=64, help="lanes of the decoding step [64]")
    parser.add_argument("--context", type=int, default=2048, help="tokens of a lane, and of a training sequence [2048]")
    parser.add_argument("--bandwidth", type=float, default=4.8, help="of the memory, TB/s [4.8, an H200]")
    parser.add_argument("--flops", type=float, default=800, help="of bf16 products, TFLOP/s [800]")
    parser.add_argument("--launch", type=float, default=4, help="of a kernel, microseconds [4]")
    options = parser.parse_args()
    unknown = [shape for shape in options.shapes if shape not in SHAPES]
    if unknown:
        parser.error(f"there is no shape `{unknown[0]}`; choose from {', '.join(SHAPES)}")
    for shape in options.shapes:
        place = f"{shape}, {options.batch} lanes with {options.context} tokens"
        table(f"Decoding one token each, {place}", decoding(shape, options.batch, options.context), options)
        title = f"Training step, {shape}, 64 sequences of {options.context} tokens, all tokens scored"
        table(title, training(shape, 64, options.context), options)


if __name__ == "__main__":
    main()
