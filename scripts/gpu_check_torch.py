"""Measures prefill, decoding and training steps of transformers and PyTorch, for comparison with webshop.

The weights are random; sizes, lanes, contexts and sequences are those of webshop's GPU check, and so is the
output: Markdown on standard output. Decoding uses `generate` with its usual settings, without the time of the
prompt. A training step recomputes activations by layer and uses f32 master weights, autocast and a fused
AdamW, like common trainers.
"""

import argparse
import gc
import statistics
import time

import torch
import transformers

SIZES = {
    "tiny": dict(vocab_size=2048, hidden_size=128, intermediate_size=320, num_hidden_layers=3, num_attention_heads=4),
    "0.5b": dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14),
    "1.5b": dict(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12),
    "3b": dict(hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16),
}
REPETITIONS = 3
STEPS = 32


def config(name):
    sizes = dict(vocab_size=151936, num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=32768)
    return transformers.Qwen2Config(**(sizes | SIZES[name]))


def make(name, device, dtype):
    with torch.device(device):
        torch.set_default_dtype(dtype)
        model = transformers.Qwen2ForCausalLM._from_config(config(name), attn_implementation="sdpa")
        torch.set_default_dtype(torch.float32)
    return model


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def timed(device, work):
    """Median of the seconds of `REPETITIONS` calls, after one call for warming up."""
    seconds = []
    for repetition in range(REPETITIONS + 1):
        wait(device)
        began = time.perf_counter()
        work()
        wait(device)
        if repetition:
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def peak(device):
    return f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if device.type == "cuda" else "–"


def fresh(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def table(title, columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n| {' | '.join(['---'] * len(columns))} |", flush=True)


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def attempt(cells, work):
    """Prints a row of results, or of the error if `work` fails."""
    try:
        row(*cells, *work())
    except Exception as error:  # a failure must not prevent the other measurements
        row(*cells, "failed: " + str(error).splitlines()[0].replace("|", " "))


@torch.inference_mode()
def prefill(model, device, lanes, prompt):
    fresh(device)
    ids = torch.randint(0, model.config.vocab_size, (lanes, prompt), device=device)
    seconds = timed(device, lambda: model(ids, use_cache=True, logits_to_keep=1))
    return f"{lanes * prompt / seconds:.0f}", peak(device)


@torch.inference_mode()
def decode(model, device, lanes, context):
    fresh(device)
    ids = torch.randint(0, model.config.vocab_size, (lanes, context), device=device)
    options = dict(do_sample=False, pad_token_id=0, attention_mask=torch.ones_like(ids))

    def generate(n):
        return timed(device, lambda: model.generate(ids, min_new_tokens=n, max_new_tokens=n, **options))

    # The difference of two lengths removes the time of the prompt.
    each = (generate(STEPS + 1) - generate(1)) / STEPS
    return f"{each * 1e3:.3f}", f"{lanes / each:.0f}", peak(device)


def train(name, device, dtype, sequences, length, micro_batch_tokens):
    fresh(device)
    model = make(name, device, torch.float32)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=device.type == "cuda")
    at_once = max(1, micro_batch_tokens // length)

    def step(n):
        optimizer.zero_grad(set_to_none=False)
        for first in range(0, n, at_once):
            ids = torch.randint(0, model.config.vocab_size, (min(at_once, n - first), length), device=device)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
                loss = model(ids, labels=ids, use_cache=False).loss
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        wait(device)

    step(at_once)
    began = time.perf_counter()
    step(sequences)
    seconds = time.perf_counter() - began
    return f"{seconds:.2f}", f"{sequences * length / seconds:.0f}", peak(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", default="0.5b,1.5b,3b")
    parser.add_argument("--batches", default="1,16,64,256")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--train-sequences", type=int, default=64)
    parser.add_argument("--train-length", type=int, default=2048)
    # Here the logits of a whole micro-batch exist at the same time, so it must be smaller.
    parser.add_argument("--micro-batch-tokens", type=int, default=8192)
    args = parser.parse_args()
    device = torch.device(args.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    shapes, batches = args.shapes.split(","), [int(batch) for batch in args.batches.split(",")]
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {device}, {dtype}.")

    for shape in shapes:
        model = make(shape, device, dtype).eval()
        table(f"Prefill, {shape}", ["model", "lanes", "tokens a lane", "tokens/s", "peak GiB"])
        for lanes in batches:
            attempt((shape, lanes, args.prompt), lambda: prefill(model, device, lanes, args.prompt))
        table(f"Decoding by `generate`, {shape}", ["model", "lanes", "context", "ms a step", "tokens/s", "peak GiB"])
        for lanes in batches:
            attempt((shape, lanes, args.context), lambda: decode(model, device, lanes, args.context))
        del model
        table(f"A training step, {shape}", ["model", "sequences × tokens", "seconds", "tokens/s", "peak GiB"])
        size = (args.train_sequences, args.train_length)
        attempt(
            (shape, f"{size[0]} × {size[1]}"),
            lambda: train(shape, device, dtype, *size, args.micro_batch_tokens),
        )


if __name__ == "__main__":
    main()
