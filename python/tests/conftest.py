"""A shop, an oracle that plays it, and a training run of seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import webshop

SMALL_CONFIG = """
catalog = { size = 30, train_on_source = true, auxiliary_shops = 1, auxiliary_products = 10 }
prompt.max_turn_tokens = 24
warm_start = { demonstrations = "two-habits", thinking_share = 0.2, copy_task_steps = 5, steps = 55, batch_episodes = 8, warmup_steps = 5, lr = 2e-2, filtered_share = 0.0 }
value = { goals = 8, samples = 4 }
rl = { steps = 4, reward = "score", batch_episodes = 32, minibatches = 1, micro_batch_tokens = 512 }
evaluation = { episodes = 8, every = 2, warm_start_every = 30, split = "test", shops = 0 }
judgement = { episodes = 0 }
model = { from = "", hidden_size = 32, layers = 1, heads = 2, kv_heads = 1, head_dim = 16, intermediate_size = 48, vocab_size = 700 }
"""
FILES = ["metrics.jsonl", "value.json", "checkpoints/last/model/model.safetensors", "checkpoints/last/optimizer.safetensors"]


@pytest.fixture(scope="session")
def shop() -> webshop.Shop:
    return webshop.Shop()


def command(*arguments: object) -> None:
    words = [sys.executable, "-m", "webshop", *map(str, arguments)]
    subprocess.run(words, check=True, capture_output=True)


def play_oracle(session: webshop.Session) -> list[str]:
    """Buys what earns the most, and returns the actions, in lower case as they are recorded."""
    best = session.shop.best_purchase(session.goal)
    title = session.shop.goal(session.goal)["title"]
    actions = [f"search[{title.lower()}]"]
    session.step(actions[0])
    while best["asin"].lower() not in session.available["clickables"]:
        assert session.noop is None, (session.goal, session.noop)
        actions.append("click[next >]")
        session.step(actions[-1])
    for label in [best["asin"].lower(), *best["clicks"], "buy now"]:
        actions.append(f"click[{label}]")
        session.step(actions[-1])
    return actions


@pytest.fixture(scope="session")
def small_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "small.toml"
    file.write_text(SMALL_CONFIG)
    return file


@pytest.fixture(scope="session")
def alone(small_config: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The files of the run that makes its episodes itself."""
    run = tmp_path_factory.mktemp("alone") / "run"
    command = [sys.executable, "-m", "webshop", "train", "--config", str(small_config), "--out", str(run)]
    subprocess.run(command, check=True, capture_output=True)
    return learned_files(run)


def learned_files(run: Path) -> list[bytes]:
    """What must be equal of two runs: metrics, V*, weights and the state of the optimizer."""
    return [(run / name).read_bytes() for name in FILES]
