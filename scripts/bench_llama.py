#!/usr/bin/env python3
"""Compares the speed of the model on the CPU with llama.cpp, and prints one table.

Both sides compute the same cases with the same shapes and number of threads, and alternate round by round, as in
scripts/bench_torch.py. llama.cpp reads GGUF files with random weights that this script writes, in f32 and in
bfloat16, and counts with the fastest of several settings. It takes the most probable token, without a
log-probability; this project samples from the distribution and computes the log-probability of what it drew.

    python scripts/bench_llama.py                     # both models, about ten minutes
    python scripts/bench_llama.py --model tiny --rounds 20

Needs numpy, gguf and llama-cpp-python, which compiles llama.cpp for this machine's processor.
"""

import ctypes
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import gguf
import llama_cpp as llama
import numpy

from bench_torch import CASES, SHAPES, Ours, alternate, build, common_arguments, machine, tokens_of

EPS = 1e-6
# Whether attention is fused, and the tokens that are computed together.
SETTINGS = {"fused": (1, 512), "plain": (0, 512), "fused 2048": (1, 2048)}


def write_model(path, shape, dtype):
    """A GGUF file with random weights and without a vocabulary."""
    generator = numpy.random.default_rng(0)
    hidden, inner, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    head_dim = hidden // shape["num_attention_heads"]
    kv_width = head_dim * shape["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_vocab_size(shape["vocab_size"])
    writer.add_tokenizer_model("no_vocab")

    def matrix(name, rows, columns):
        values = generator.standard_normal((rows, columns), dtype=numpy.float32) * numpy.float32(0.02)
        if dtype == "bf16":
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)

    def vector(name, n, value):
        writer.add_tensor(name, numpy.full(n, value, dtype=numpy.float32))

    matrix("token_embd.weight", shape["vocab_size"], hidden)
    vector("output_norm.weight", hidden, 1)
    for layer in range(layers):
        at = f"blk.{layer}."
        vector(at + "attn_norm.weight", hidden, 1)
        for name, rows in [("q", hidden), ("k", kv_width), ("v", kv_width)]:
            matrix(f"{at}attn_{name}.weight", rows, hidden)
            vector(f"{at}attn_{name}.bias", rows, 0)
        matrix(at + "attn_output.weight", hidden, hidden)
        vector(at + "ffn_norm.weight", hidden, 1)
        matrix(at + "ffn_gate.weight", inner, hidden)
        matrix(at + "ffn_up.weight", inner, hidden)
        matrix(at + "ffn_down.weight", hidden, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    """The same cases in llama.cpp."""

    def __init__(self, path, vocab_size, threads):
        self.model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
        assert self.model, f"llama.cpp cannot read {path}"
        self.vocab_size = vocab_size
        self.threads = threads
        self.context = None

    def open(self, setting, lanes, tokens):
        """Empty lanes for `tokens` tokens each."""
        fused, at_once = SETTINGS[setting]
        config = llama.llama_context_default_params()
        config.n_seq_max = lanes
        config.n_ctx = lanes * -(-tokens // 256) * 256
        config.n_batch = max(config.n_ctx, at_once)
        config.n_ubatch = at_once
        config.n_threads = config.n_threads_batch = self.threads
        config.flash_attn_type = fused
        self.context = llama.llama_init_from_model(self.model, config)
        assert self.context, "llama.cpp cannot open a context"
        self.batch = llama.llama_batch_init(config.n_batch, 0, 1)
        self.lengths = [0] * lanes

    def close(self):
        if self.context:
            llama.llama_batch_free(self.batch)
            llama.llama_free(self.context)
            self.context = None

    def decode(self, ids):
        """Appends the ids of each lane and returns the most probable token after the last of each."""
        batch, n = self.batch, 0
        ends = []
        for lane, of_lane in enumerate(ids):
            for at, token in enumerate(of_lane):
                batch.token[n] = token
                batch.pos[n] = self.lengths[lane] + at
                batch.n_seq_id[n] = 1
                batch.seq_id[n][0] = lane
                batch.logits[n] = at + 1 == len(of_lane)
                n += 1
            self.lengths[lane] += len(of_lane)
            ends.append(n - 1)
        batch.n_tokens = n
        assert llama.llama_decode(self.context, batch) == 0, "llama.cpp has no room for the tokens"
        return [self.most_probable(end) for end in ends]

    def most_probable(self, end):
        logits = llama.llama_get_logits_ith(self.context, end)
        address = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))
        return int(numpy.argmax(numpy.ctypeslib.as_array(address, (self.vocab_size,))))

    def texts(self, lanes, tokens):
        return [[(7 * at + 13 * lane) % self.vocab_size for at in range(tokens)] for lane in range(lanes)]

    def rounds(self, case, setting, rounds):
        """Yields the seconds of one round after the other."""
        kind, lanes, tokens, *drawn = case.split()
        lanes, tokens = int(lanes), int(tokens)
        if kind == "prefill":
            self.open(setting, lanes, tokens + 1)
            texts = self.texts(lanes, tokens)
            while True:
                llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
                self.lengths = [0] * lanes
                start = time.perf_counter()
                self.decode(texts)
                yield time.perf_counter() - start
        drawn = int(drawn[0])
        self.open(setting, lanes, tokens + 2 * (rounds + 1) * drawn)
        last = self.decode(self.texts(lanes, tokens))
        while True:
            start = time.perf_counter()
            for _ in range(drawn):
                last = self.decode([[token] for token in last])
            yield time.perf_counter() - start


def measure(case, ours, theirs, rounds):
    """The seconds of ours and of llama.cpp with each of its settings."""
    sides, opened = {"ours": lambda: ours.ask(case)}, []
    for name, (path, vocab_size, threads) in theirs.items():
        for setting in SETTINGS:
            side = Llama(path, vocab_size, threads)
            opened.append(side)
            turns = side.rounds(case, setting, rounds)
            sides[f"{name} {setting}"] = lambda turns=turns: next(turns)
    seconds = alternate(sides, rounds)
    ours.ask("done")
    for side in opened:
        side.close()
        llama.llama_model_free(side.model)
    return seconds


def row(model, case, weights, seconds):
    rate = {name: tokens_of(case) / statistics.median(taken) for name, taken in seconds.items()}
    best = {name: tokens_of(case) / min(taken) for name, taken in seconds.items()}
    cells = [model, case, weights, f"{rate['ours']:,.1f}"]
    for dtype in ["f32", "bf16"]:
        fastest = max((name for name in rate if name.startswith(dtype)), key=rate.get)
        cells += [
            f"{rate[fastest]:,.1f}", fastest.removeprefix(dtype + " "), f"{rate['ours'] / rate[fastest]:.2f}",
            f"{best['ours'] / best[fastest]:.2f}",
        ]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    arguments = common_arguments(__doc__.split("\n")[0]).parse_args()
    binary = arguments.binary or build()
    silent = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(silent, None)
    llama.llama_backend_init()

    packages = f"llama-cpp-python {version('llama-cpp-python')}, gguf {version('gguf')}"
    print(f"{machine(arguments.threads)}, {packages}\n")
    print("llama.cpp: " + llama.llama_print_system_info().decode() + "\n")
    print("| model | case | our weights | ours, tokens/s | llama.cpp f32 | its setting | ratio of medians | of fastest "
          "| llama.cpp bf16 | its setting | ratio of medians | of fastest |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for model in SHAPES if arguments.model == "all" else [arguments.model]:
        weights = "f32" if model == "tiny" else "bf16"
        ours = Ours(binary, model, weights, arguments.threads)
        with tempfile.TemporaryDirectory() as folder:
            theirs = {}
            for dtype in ["f32", "bf16"]:
                path = Path(folder, f"{dtype}.gguf")
                write_model(path, SHAPES[model], dtype)
                theirs[dtype] = (path, SHAPES[model]["vocab_size"], arguments.threads)
            for case in arguments.cases or [case for case in CASES[model] if not case.startswith("train")]:
                rounds = arguments.rounds or (15 if model == "tiny" else 5)
                row(model, case, weights, measure(case, ours, theirs, rounds))
        ours.close()


if __name__ == "__main__":
    main()
