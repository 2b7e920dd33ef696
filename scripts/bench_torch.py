#!/usr/bin/env python3
"""Compares the speed of the model on the CPU with PyTorch and transformers, and prints one table.

Both sides compute the same cases with the same shapes and number of threads. They alternate round by round,
so that other load of the machine affects both. This project's side is `agent/lm/benches/cpu.rs`, which this
script builds and starts. Both compute in f32, PyTorch with the fastest of several settings; bfloat16 is shown
for information only.

    python scripts/bench_torch.py                     # both models, about fifteen minutes
    python scripts/bench_torch.py --model tiny --rounds 20

Needs torch and transformers; no weights are loaded, both sides create random ones.
"""

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

SHAPES = {
    "tiny": dict(
        vocab_size=2048, hidden_size=128, intermediate_size=320, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, rope_theta=1e4,
    ),
    "0.5b": dict(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
        num_key_value_heads=2, max_position_embeddings=4096, rope_theta=1e6,
    ),
}
PAUSE_S, SHORT_S = 0.1, 0.5
# Requests to `agent/lm/benches/cpu.rs`; PyTorch computes the same cases.
CASES = {
    "tiny": ["prefill 1 512", "prefill 16 256", "decode 1 256 32", "decode 16 256 32", "decode 64 256 32", "train 8 256"],
    "0.5b": ["prefill 1 512", "decode 1 256 8", "decode 16 64 4", "decode 64 64 4", "train 1 512"],
}


def tokens_of(case):
    kind, lanes, tokens, *drawn = case.split()
    return int(lanes) * int(drawn[0] if drawn else tokens)


class Ours:
    """The benchmark of this repository, which replies to a case with its seconds."""

    def __init__(self, binary, model, weights, threads):
        environment = dict(os.environ, RAYON_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(
            [binary, model, weights], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        answered = self.answer()
        assert int(answered) == threads, f"{answered} threads instead of {threads}"

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the bench ended early")
        return float(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def build():
    """Builds the benchmark with the profile of `cargo bench` and returns its path."""
    command = ["cargo", "bench", "-p", "webshop-lm", "--bench", "cpu", "--no-run", "--message-format", "json"]
    messages = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    paths = [json.loads(line).get("executable") for line in messages]
    return [path for path in paths if path][-1]


class Torch:
    """The same cases in transformers; the fastest of the `settings` of a case counts."""

    def __init__(self, shape, dtype):
        import torch
        from transformers import Qwen2Config, Qwen2ForCausalLM

        self.torch = torch
        config = Qwen2Config(**shape, tie_word_embeddings=True, use_sliding_window=False)
        torch.manual_seed(0)
        self.model = Qwen2ForCausalLM(config).to(dtype)
        self.model.config._attn_implementation = "sdpa"

    @staticmethod
    def settings(case):
        return {"prefill": ["dynamic"], "decode": ["dynamic", "static", "generate"], "train": ["sdpa"]}[case.split()[0]]

    def ids(self, lanes, tokens):
        return self.torch.randint(0, self.model.config.vocab_size, (lanes, tokens))

    def round(self, case, setting):
        kind, lanes, tokens, *drawn = case.split()
        lanes, tokens = int(lanes), int(tokens)
        if kind == "train":
            return self.train(lanes, tokens)
        with self.torch.inference_mode():
            self.model.eval()
            if kind == "prefill":
                return self.prefill(lanes, tokens)
            return self.decode(setting, lanes, tokens, int(drawn[0]))

    def draw(self, logits):
        """Samples one token per lane and looks up its log-probability."""
        log_probs = self.torch.log_softmax(logits.float(), -1)
        drawn = self.torch.multinomial(log_probs.exp(), 1)
        log_probs.gather(-1, drawn)
        return drawn

    def prefill(self, lanes, tokens):
        from transformers import DynamicCache

        ids = self.ids(lanes, tokens)
        start = time.perf_counter()
        cache = DynamicCache(config=self.model.config)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        self.draw(out.logits[:, -1])
        return time.perf_counter() - start

    def context(self, setting, lanes, context, drawn):
        """A cache with `context` tokens per lane and arbitrary values: a prefill would only take time."""
        from transformers import DynamicCache, StaticCache

        config = self.model.config
        if setting == "static":
            # A static cache attends over its whole capacity, so it gets no more than it needs.
            cache = StaticCache(config=config, max_cache_len=context + drawn)
        else:
            cache = DynamicCache(config=config)
        shape = (lanes, config.num_key_value_heads, context, config.hidden_size // config.num_attention_heads)
        for layer in range(config.num_hidden_layers):
            keys, values = (self.torch.randn(shape, dtype=self.model.dtype) for _ in "kv")
            cache.update(keys, values, layer)
        return cache

    def decode(self, setting, lanes, context, drawn):
        cache = self.context(setting, lanes, context, drawn)
        assert cache.get_seq_length() == context
        ids = self.ids(lanes, context + 1)
        start = time.perf_counter()
        if setting == "generate":
            self.model.generate(
                input_ids=ids, attention_mask=self.torch.ones_like(ids), past_key_values=cache, do_sample=True,
                top_k=0, top_p=1.0, min_new_tokens=drawn, max_new_tokens=drawn, pad_token_id=0, eos_token_id=None,
            )
        else:
            last = ids[:, -1:]
            for _ in range(drawn):
                last = self.draw(self.model(input_ids=last, past_key_values=cache, use_cache=True).logits[:, -1])
        return time.perf_counter() - start

    def train(self, texts, tokens):
        torch = self.torch
        self.model.train()
        ids = self.ids(texts, tokens)
        asked = torch.zeros_like(ids, dtype=torch.bool)
        asked[:, 0 : tokens - 1 : 3] = True
        targets = ids.roll(-1, 1)[asked]
        start = time.perf_counter()
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
        logits = self.model.lm_head(hidden[asked]).float()
        log_probs = torch.log_softmax(logits, -1).gather(-1, targets[:, None])
        log_probs.mean().backward()
        seconds = time.perf_counter() - start
        self.model.zero_grad(set_to_none=True)
        return seconds


def alternate(sides, rounds):
    """Seconds of every round of every side; sides alternate, and the first round of each is not measured.

    Before each round the machine is idle for a moment: threads of OpenMP spin on after their work, and would take a
    core from the next side. A short round follows one that wakes the side's own threads, which takes milliseconds
    in a virtual machine.
    """
    seconds = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, once in sides.items():
            time.sleep(PAUSE_S)
            taken = once()
            if taken < SHORT_S:
                taken = once()
            if turn > 0:
                seconds[name].append(taken)
    return seconds


def compare(case, ours, theirs, rounds):
    """The seconds of ours and of PyTorch with each of its settings."""
    sides = {f"ours {name}": (lambda side=side: side.ask(case)) for name, side in ours.items()}
    for name, side in theirs.items():
        for setting in side.settings(case) if name == "f32" else side.settings(case)[:1]:
            sides[f"torch {name} {setting}"] = lambda side=side, setting=setting: side.round(case, setting)
    seconds = alternate(sides, rounds)
    for side in ours.values():
        side.ask("done")
    gc.collect()
    return seconds


def row(model, case, seconds):
    rate = {name: tokens_of(case) / statistics.median(taken) for name, taken in seconds.items()}
    best = {name: tokens_of(case) / min(taken) for name, taken in seconds.items()}
    reference = max((name for name in rate if name.startswith("torch f32")), key=rate.get)
    halves = [value for name, value in rate.items() if name.startswith("torch bf16")]
    for name in (name for name in rate if name.startswith("ours")):
        cells = [
            model, case, name.removeprefix("ours "), f"{rate[name]:,.1f}", f"{rate[reference]:,.1f}",
            reference.removeprefix("torch f32 "), f"{rate[name] / rate[reference]:.2f}",
            f"{best[name] / best[reference]:.2f}", f"{halves[0]:,.1f}" if halves else "–",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def machine(threads):
    """Date, processor, threads, compiler and interpreter, in words."""
    with open("/proc/cpuinfo") as lines:
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    rust = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    date = time.strftime("%Y-%m-%d")
    return f"{date}, {processor}, {threads} threads, {platform.machine()}; {rust}; Python {platform.python_version()}"


def common_arguments(description):
    """A parser of the arguments that all comparisons with the benchmark have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=[*SHAPES, "all"], default="all")
    parser.add_argument("--rounds", type=int, help="measured rounds a case; default 15 (tiny) and 5")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", help="cases to measure; default: all of the model that both sides have")
    parser.add_argument("--binary", help="path of the built benchmark")
    return parser


def main():
    parser = common_arguments(__doc__.split("\n")[0])
    parser.add_argument("--bf16", action="store_true", help="also measure PyTorch in bfloat16; needs more memory")
    arguments = parser.parse_args()
    binary = arguments.binary or build()

    import torch
    import transformers

    torch.set_num_threads(arguments.threads)
    packages = f"torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{machine(arguments.threads)}, {packages}\n")
    print("| model | case | our weights | ours, tokens/s | PyTorch f32 | its setting | ratio of medians | of fastest | PyTorch bf16 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in SHAPES if arguments.model == "all" else [arguments.model]:
        theirs = {"f32": Torch(SHAPES[model], torch.float32)}
        if arguments.bf16:
            theirs["bf16"] = Torch(SHAPES[model], torch.bfloat16)
        # The small model is trained in this project, so its weights are f32; published checkpoints are bf16.
        weights = ["f32"] if model == "tiny" else ["bf16"]
        ours = {name: Ours(binary, model, name, arguments.threads) for name in weights}
        for case in arguments.cases or CASES[model]:
            rounds = arguments.rounds or (15 if model == "tiny" else 5)
            row(model, case, compare(case, ours, theirs, rounds))
        peaks = ", ".join(f"ours with {name} weights {side.ask('done') / 1e9:.2f} GB" for name, side in ours.items())
        print(f"\nPeak memory, {model}: {peaks}, PyTorch (all models so far) "
              f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB\n")
        for side in ours.values():
            side.close()
        theirs.clear()
        gc.collect()


if __name__ == "__main__":
    main()
