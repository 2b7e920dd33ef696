"""Training with episodes that other processes make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SMALL_CONFIG, learned_files

import webshop.training

OWN = """
import os, signal, sys, time
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

signal.signal(signal.SIGINT, signal.default_int_handler)
code = train(sys.argv[1:], rollout)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(code)
sys.exit("Ctrl-C is not Python's again")
"""


def test_a_function_makes_the_episodes(small_config: Path, alone: list[bytes], tmp_path: Path) -> None:
    flags = ["--config", str(small_config), "--out", str(tmp_path / "run")]
    code = OWN.replace("FAILS", "False")
    ended = subprocess.run([sys.executable, "-c", code, *flags], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.split("\n").count("32") >= 5, "V* and four batches"
    assert learned_files(tmp_path / "run") == alone


def test_a_function_that_fails_ends_the_run_and_another_continues_it(
    small_config: Path, alone: list[bytes], tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    command = [sys.executable, "-c", OWN.replace("FAILS", "True"), "--config", str(small_config), "--out", run]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "rollout workers: RuntimeError: no machine is left" in ended.stderr
    assert "in rollout" in ended.stderr, "the traceback"
    resumed = [sys.executable, "-m", "webshop", "train", "--resume", "--out", run]
    subprocess.run(resumed, check=True, capture_output=True)
    assert learned_files(tmp_path / "run") == alone


def test_what_cannot_be_made_elsewhere_is_refused(small_config: Path, tmp_path: Path) -> None:
    flags = ["--config", str(small_config), "--set", "curriculum.sizes=[5, 10]", "--set", "curriculum.thresholds=[0.5, 0.5]"]
    command = [sys.executable, "-c", OWN.replace("FAILS", "False"), *flags, "--out", str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "configuration key `curriculum.sizes` must be empty with rollout workers" in ended.stderr
    assert not (tmp_path / "run").exists()


def test_a_worker_names_what_it_has_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hidden_siz"):
        webshop.training.RolloutWorker("model.hidden_siz = 3")
    worker = webshop.training.RolloutWorker(SMALL_CONFIG)
    with pytest.raises(ValueError, match="tokenizer"):
        worker.rollout(tmp_path, 1.0, 1.0, [(0, 0, 0, 0)])


def test_a_process_trains_once() -> None:
    code = """
from webshop.training import train

print(train(["--preset", "nonsense"], print))
print(train(["--help"], print))
print(train(["--config", "nowhere.toml"], print))
print(train(["--config", "nowhere.toml"], print))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = ended.stdout.splitlines()
    assert [line for line in lines if line in ("0", "2")] == ["2", "0", "2", "2"]
    assert "nowhere.toml" in ended.stderr and "a process runs one command of webshop" in ended.stderr
