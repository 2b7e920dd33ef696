"""Records results of Hugging Face transformers and PEFT for small random Qwen2 folders, on the CPU.

`tests/it/transformers.rs` compares this project with the recordings. They are committed, so the tests need
neither Python nor these libraries. To record again:

    python scripts/record_transformers.py record tests/data/transformers

This needs torch, transformers, peft, tokenizers and safetensors; their versions are printed and written into
the README of the recordings. All random numbers come from fixed seeds, but other versions of torch may draw
other weights; then all recordings change.

The opposite direction, folders of this project loaded by transformers, is checked by hand:

    webshop model convert tests/data/transformers/models/grouped --dtype f32 --out ours
    python scripts/record_transformers.py check ours tests/data/transformers/models/grouped
    webshop model merge tests/data/transformers/models/grouped --adapter tests/data/transformers/adapters/plain \\
        --out merged
    python scripts/record_transformers.py check merged tests/data/transformers/adapters/plain
    python scripts/record_transformers.py check-adapter adapter tests/data/transformers/adapters/plain

`check` loads a folder with `AutoModelForCausalLM` and compares its logits with the recorded ones;
`check-adapter` loads an adapter with PEFT onto the base model of the recording.
"""

import argparse
import json
import shutil
import sys
from datetime import datetime
from pathlib import Path

import peft
import safetensors
import tokenizers
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer
from transformers.utils import chat_template_utils

TEMPLATES = Path(__file__).parent / "templates"

# Largest accepted difference of a logit, due to the order of additions.
TOLERANCE = 1e-4

# name -> (seed, shape, stored type, size of a shard)
MODELS = {
    "tied": (1, dict(vocab_size=131, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, tie_word_embeddings=True), torch.float32, "5GB"),
    "untied": (2, dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
                       num_key_value_heads=2, rms_norm_eps=1e-5), torch.float32, "5GB"),
    "grouped": (3, dict(vocab_size=113, hidden_size=36, intermediate_size=52, num_hidden_layers=3,
                        num_attention_heads=6, num_key_value_heads=1,
                        rope_parameters={"rope_type": "default", "rope_theta": 1e6}), torch.float32, "5GB"),
    "odd": (4, dict(vocab_size=101, hidden_size=45, intermediate_size=37, num_hidden_layers=1, num_attention_heads=3,
                    num_key_value_heads=3, head_dim=14), torch.float32, "5GB"),
    "sharded-bf16": (5, dict(vocab_size=127, hidden_size=40, intermediate_size=56, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2), torch.bfloat16, "20KB"),
    "f16": (6, dict(vocab_size=109, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
                    num_key_value_heads=1, tie_word_embeddings=True), torch.float16, "5GB"),
}

# Lengths of the input sequences, in tokens.
LENGTHS = [1, 9, 50]

# name -> (seed, configuration); all for the model `grouped`.
ADAPTERS = {
    "plain": (7, dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"])),
    "patterns": (8, dict(r=3, lora_alpha=5, use_rslora=True, rank_pattern={"o_proj": 2, "layers.1.mlp.up_proj": 5},
                         alpha_pattern={"q_proj": 7},
                         target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])),
}

# The time that `strftime_now` formats.
NOW = datetime(2024, 7, 6, 9, 5, 3)

SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"]
# Tokens added to the vocabulary of Qwen2.5 that are not special.
ADDED_TOKENS = ["<tool_call>", "</tool_call>"]

QWEN2_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def versions():
    python = ".".join(map(str, sys.version_info[:3]))
    modules = [torch, transformers, peft, tokenizers, safetensors]
    return [f"python {python}"] + [f"{module.__name__} {module.__version__}" for module in modules]


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def sequences(vocab_size, generator):
    return [torch.randint(vocab_size, (n,), generator=generator).tolist() for n in LENGTHS]


def loss_of(model, texts):
    """The mean of -log p over the tokens at positions 3, 6, 9, … Returns it and all logits, [T, V]."""
    logits, losses = [], []
    for ids in texts:
        rows = model(input_ids=torch.tensor([ids])).logits[0]
        logits.append(rows.detach())
        log_probs = torch.log_softmax(rows, dim=-1)
        losses += [-log_probs[i - 1, ids[i]] for i in range(1, len(ids)) if i % 3 == 0]
    return torch.stack(losses).mean(), torch.cat(logits)


def record_models(out):
    for name, (seed, shape, dtype, shard) in MODELS.items():
        torch.manual_seed(seed)
        config = Qwen2Config(max_position_embeddings=128, initializer_range=0.2, **shape)
        model = Qwen2ForCausalLM(config)
        with torch.no_grad():
            for parameter in model.parameters():
                # Zero biases and unit gains would hide an error in either.
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.2)
        folder = out / "models" / name
        model.to(dtype).save_pretrained(folder, max_shard_size=shard)
        # The reference computes in f32 for every type of the files.
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).train(False)
        texts = sequences(config.vocab_size, torch.Generator().manual_seed(seed))
        loss, logits = loss_of(model, texts)
        loss.backward()
        recorded = {f"gradient.{name}": p.grad.contiguous() for name, p in model.named_parameters()}
        save_file({"logits": logits} | recorded, folder / "recorded.safetensors")
        prompts = [text[:12] for text in texts]
        greedy = [
            model.generate(torch.tensor([ids]), max_new_tokens=16, do_sample=False, eos_token_id=None,
                           pad_token_id=0)[0, len(ids):].tolist()
            for ids in prompts
        ]
        write_json(folder / "recorded.json", {
            "texts": texts, "loss": loss.item(), "prompts": prompts, "greedy": greedy,
        })


def record_adapters(out):
    base = out / "models" / "grouped"
    texts = json.loads((base / "recorded.json").read_text())["texts"]
    for name, (seed, config) in ADAPTERS.items():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **config))
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                # With its initial values the adapter would have no effect.
                if "lora_B" in parameter_name:
                    parameter.normal_(std=0.3)
        folder = out / "adapters" / name
        model.save_pretrained(folder)
        adapter_config = json.loads((folder / "adapter_config.json").read_text())
        # Replaces the path on the recording machine.
        adapter_config["base_model_name_or_path"] = "grouped"
        adapter_config["target_modules"] = sorted(adapter_config["target_modules"])
        write_json(folder / "adapter_config.json", adapter_config)
        (folder / "README.md").unlink()
        loss, logits = loss_of(model, texts)
        loss.backward()
        gradients = {
            "gradient." + name.replace(".default", ""): p.grad.contiguous()
            for name, p in model.named_parameters() if p.grad is not None
        }
        save_file({"logits": logits} | gradients, folder / "recorded.safetensors")
        write_json(folder / "recorded.json", {"base": "grouped", "texts": texts})


def corpus():
    """Generated training text for the merges: goods, prices and sentences."""
    goods = ["lamp", "desk lamp", "t-shirt", "sneaker", "water bottle", "phone case", "crème brûlée torch"]
    colors = ["black", "navy blue", "off-white", "rose gold", "grün"]
    lines = []
    for i, good in enumerate(goods):
        for j, color in enumerate(colors):
            lines.append(f"I'm looking for a {color} {good}, price lower than ${10 * i + j}.99 dollars")
            lines.append(f"search[{color} {good}]\nclick[B0{i}{j}ABC]\nclick[buy now]")
            lines.append(f'{{"name": "click", "arguments": {{"label": "{color}", "size": {i + j}}}}}')
            lines.append(f"It's the {good}; they'll ship {i} of them, we've {j}. 您好，{color}！")
    return lines


TEXTS = [
    "", " ", "  ", "a", "Hello, world!", "hello  world   three", "I'm, you're, HE'LL, it'S we'd",
    "tabs\tand\t\ttabs", "line\nline\r\nline\n\n\nline \n  indented\n", "trailing   ", "   leading",
    "1234567890 3.14 1,000 ½ ٣ ², x1y2", "don't stop—never… “quotes” ‘single’",
    "crème brûlée", "cre\u0300me bru\u0302le\u0301e", "\u1100\u1161\u11a8 \uac01", "ﬁ ligature ﬃ",
    "你好，世界！こんにちは 안녕하세요", "Ελληνικά и русский, עברית العربية", "👍🏽 👨\u200d👩\u200d👧 🇩🇪",
    "search[navy blue t-shirt]", "click[B012ABC]", '{"name": "click", "arguments": {"a": [1, 2.5, null]}}',
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|><|im_start|>", "<|im_end|", "<tool_call>\n{}\n</tool_call>",
    "a<|endoftext|>b <|endoftext|> c", "\u00a0nbsp\u00a0 \u2003em\u200bzero", "\x00\x01\x7f\u0085", "<|object_ref_start|>x",
    "price lower than $30.00 dollars", "off-white, rose gold; grün", "A" * 40, "ab" * 30, "=" * 33, "🙂" * 5,
]


def make_tokenizer():
    """A byte-level BPE like that of Qwen2, with special tokens after the learned ones."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_PIECES), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=560, initial_alphabet=sorted(alphabet), show_progress=False)
    trained.train_from_iterator(corpus(), trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = Qwen2Tokenizer(vocab=model["vocab"], merges=merges, eos_token="<|im_end|>")
    tokenizer.add_tokens([tokenizers.AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([tokenizers.AddedToken(token, special=False, normalized=False) for token in ADDED_TOKENS])
    return tokenizer


def record_tokens(out, tokenizer):
    folder = out / "tokenizer"
    tokenizer.save_pretrained(folder)
    texts = [
        {
            "text": text,
            "ids": tokenizer(text, add_special_tokens=False).input_ids,
            # The ids of user text that transformers is asked to sanitize: special tokens are not recognized.
            "plain_ids": tokenizer._encode_without_added_tokens(text),
        }
        for text in TEXTS + corpus()[::9]
    ]
    for entry in texts:
        entry["decoded"] = tokenizer.decode(entry["ids"], clean_up_tokenization_spaces=False)
    write_json(folder / "recorded.json", texts)


class FixedClock:
    """The replacement of `datetime` for templates."""

    @staticmethod
    def now():
        return NOW


def record_chats(out, tokenizer):
    chat_template_utils.datetime = FixedClock
    folder = out / "chats"
    folder.mkdir(parents=True)
    conversations = json.loads((TEMPLATES / "conversations.json").read_text(encoding="utf-8"))
    recorded = []
    for path in sorted(TEMPLATES.glob("*.jinja")):
        template = path.read_bytes().decode("utf-8")
        (folder / path.name).write_bytes(path.read_bytes())
        for name, conversation in conversations.items():
            for add_generation_prompt in [False, True]:
                entry = {"template": path.stem, "conversation": name, "add_generation_prompt": add_generation_prompt}
                extra = conversation.get("extra", {})
                try:
                    entry["text"] = tokenizer.apply_chat_template(
                        conversation["messages"], tools=conversation.get("tools"),
                        documents=conversation.get("documents"), chat_template=template, tokenize=False,
                        add_generation_prompt=add_generation_prompt, **extra,
                    )
                except Exception as error:
                    entry["error"] = [type(error).__name__, str(error)]
                recorded.append(entry)
    write_json(folder / "recorded.json", {
        "now": NOW.isoformat(), "special_tokens": tokenizer.special_tokens_map, "conversations": conversations,
        "chats": recorded,
    })


def record(out):
    """Records everything again. An existing folder is replaced only if it has the README of recordings."""
    if out.exists():
        if not (out / "README.md").exists():
            sys.exit(f"`{out}` is not a folder of recordings")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    record_models(out)
    record_adapters(out)
    tokenizer = make_tokenizer()
    record_tokens(out, tokenizer)
    record_chats(out, tokenizer)
    lines = ["# What transformers and PEFT say", "",
             "Written by `python scripts/record_transformers.py record tests/data/transformers`; read by",
             "`tests/it/transformers.rs`. The weights are random, the templates and texts were made for this.", "",
             *[f"- {version}" for version in versions()], ""]
    (out / "README.md").write_text("\n".join(lines))


def compare(logits, recorded):
    difference = (logits - load_file(recorded / "recorded.safetensors")["logits"]).abs().max().item()
    print(f"largest difference of a logit: {difference:.3g}, allowed {TOLERANCE:g}")
    sys.exit(0 if difference <= TOLERANCE else 1)


def check(folder, recorded):
    """Loads a folder of this project with transformers, including tokenizer and template if present."""
    model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    print({name: sorted(keys) for name, keys in loading.items() if keys} or "every weight is used, none is missing")
    if (folder / "tokenizer.json").exists():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        print(f"{type(tokenizer).__name__}, {len(tokenizer)} tokens, eos {tokenizer.eos_token!r}")
        text = tokenizer.apply_chat_template([{"role": "user", "content": "a lamp"}], tokenize=False,
                                             add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")
        print(repr(text), ids.input_ids.tolist())
        new = model.generate(**ids, max_new_tokens=4, do_sample=False)
        print("generated", new[0, ids.input_ids.shape[1]:].tolist())
    if recorded is not None:
        texts = json.loads((recorded / "recorded.json").read_text())["texts"]
        with torch.no_grad():
            compare(loss_of(model, texts)[1], recorded)


def check_adapter(adapter, recorded):
    """Loads an adapter of this project with PEFT, onto the base model of the recorded adapter."""
    facts = json.loads((recorded / "recorded.json").read_text())
    base = recorded.parent.parent / "models" / facts["base"]
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter)
    with torch.no_grad():
        compare(loss_of(model, facts["texts"])[1], recorded)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("record", help="record again")
    verb.add_argument("out", type=Path)
    verb = verbs.add_parser("check", help="load a folder of this project with transformers")
    verb.add_argument("folder", type=Path)
    verb.add_argument("recorded", type=Path, nargs="?")
    verb = verbs.add_parser("check-adapter", help="load an adapter of this project with PEFT")
    verb.add_argument("folder", type=Path)
    verb.add_argument("recorded", type=Path)
    args = parser.parse_args()
    print("; ".join(versions()))
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    if args.verb == "record":
        record(args.out)
    elif args.verb == "check":
        check(args.folder, args.recorded)
    else:
        check_adapter(args.folder, args.recorded)


if __name__ == "__main__":
    main()
