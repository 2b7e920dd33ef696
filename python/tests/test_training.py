"""Training with episodes that other processes make."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import webshop.training

SMALL = """
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


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture(scope="module")
def alone(config: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The files of the run that makes its episodes itself."""
    run = tmp_path_factory.mktemp("alone") / "run"
    command = [sys.executable, "-m", "webshop", "train", "--config", str(config), "--out", str(run)]
    subprocess.run(command, check=True, capture_output=True)
    return files(run)


def files(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in FILES]


def on_ray(config: Path, run: Path, shards: int) -> list[str]:
    flags = ["--shards", str(shards), "--config", str(config), "--out", str(run)]
    return [sys.executable, "-m", "webshop.ray", "train", *flags]


OWN = """
import sys
from webshop.training import EpisodeRequest, RolloutWorker, train

workers = []

def rollout(request: EpisodeRequest) -> list[str]:
    if not workers:
        workers.append(RolloutWorker(request.config))
    print(len(request.coordinates), file=sys.stderr)
    if FAILS:
        raise RuntimeError("no machine is left")
    _, model, temperature, top_p, coordinates = request
    # One at a time, the last first.
    lines = [workers[0].rollout(model, temperature, top_p, [one])[0] for one in reversed(coordinates)]
    return lines[::-1]

sys.exit(train(sys.argv[1:], rollout))
"""


def test_a_function_makes_the_episodes(config: Path, alone: list[bytes], tmp_path: Path) -> None:
    flags = ["--config", str(config), "--out", str(tmp_path / "run")]
    code = OWN.replace("FAILS", "False")
    ended = subprocess.run([sys.executable, "-c", code, *flags], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.split("\n").count("32") >= 5, "V* and four batches"
    assert files(tmp_path / "run") == alone


def test_a_function_that_fails_ends_the_run_and_another_continues_it(
    config: Path, alone: list[bytes], tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    command = [sys.executable, "-c", OWN.replace("FAILS", "True"), "--config", str(config), "--out", run]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "rollout workers: RuntimeError: no machine is left" in ended.stderr
    resumed = [sys.executable, "-m", "webshop", "train", "--resume", "--out", run]
    subprocess.run(resumed, check=True, capture_output=True)
    assert files(tmp_path / "run") == alone


@pytest.mark.parametrize("shards", [1, 3])
def test_ray_makes_the_episodes(config: Path, alone: list[bytes], tmp_path: Path, shards: int) -> None:
    subprocess.run(on_ray(config, tmp_path / "run", shards), check=True, capture_output=True)
    assert files(tmp_path / "run") == alone


def test_the_work_of_a_killed_worker_is_done_again(config: Path, alone: list[bytes], tmp_path: Path) -> None:
    training = subprocess.Popen(on_ray(config, tmp_path / "run", 3), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    killed = False
    while training.poll() is None and not killed:
        for worker in workers_of(training.pid):
            os.kill(worker, signal.SIGKILL)
            killed = True
            break
        time.sleep(0.01)
    _, errors = training.communicate()
    assert training.returncode == 0, errors
    assert killed, "a worker was killed while it made episodes"
    assert files(tmp_path / "run") == alone


def workers_of(driver: int) -> list[int]:
    """The workers below this process that make episodes now."""
    parents, busy = {}, []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode()
            parents[int(process.name)] = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if command.startswith("ray::_episodes"):
            busy.append(int(process.name))

    def is_below(process: int) -> bool:
        while process in parents and process != driver:
            process = parents[process]
        return process == driver

    return [process for process in busy if is_below(process)]


def test_what_cannot_be_made_elsewhere_is_refused(config: Path, tmp_path: Path) -> None:
    flags = ["--config", str(config), "--set", "curriculum.sizes=[5, 10]", "--set", "curriculum.thresholds=[0.5, 0.5]"]
    command = [sys.executable, "-c", OWN.replace("FAILS", "False"), *flags, "--out", str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "configuration key `curriculum.sizes` must be empty with rollout workers" in ended.stderr
    assert not (tmp_path / "run").exists()


def test_a_worker_names_what_it_has_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hidden_siz"):
        webshop.training.RolloutWorker("model.hidden_siz = 3")
    worker = webshop.training.RolloutWorker(SMALL)
    with pytest.raises(ValueError, match="tokenizer"):
        worker.rollout(tmp_path, 1.0, 1.0, [(0, 0, 0, 0)])
