"""Rollouts and evaluations on a Ray cluster of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

import webshop.ray

FLAGS = ["--policy", "random", "--seed", "5", "--episodes", "40"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("whole") / "whole.jsonl"
    command = [sys.executable, "-m", "webshop", "rollout", *FLAGS, "--out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    return file.read_bytes()


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_any_number_of_shards_gives_the_same_bytes(cluster: None, whole: bytes, tmp_path: Path, shards: int) -> None:
    seen: list[tuple[int, int]] = []
    out = tmp_path / "out.jsonl"
    n = webshop.ray.rollout(
        FLAGS, out, shards=shards, cpus_per_shard=min(1, 2 / shards), progress=lambda done, of: seen.append((done, of))
    )
    assert (n, out.read_bytes()) == (40, whole)
    assert seen == [(done, shards) for done in range(1, shards + 1)]


def test_shards_of_a_killed_worker_are_run_again(cluster: None, whole: bytes, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        while not killed:
            for worker in workers_of("6"):
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    out = tmp_path / "out.jsonl"
    webshop.ray.rollout(FLAGS, out, shards=6)
    killer.join(timeout=60)
    assert killed, "a worker was killed while its shard ran"
    assert out.read_bytes() == whole


def workers_of(shards: str) -> Iterator[int]:
    """The workers that run one of so many shards now."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode().split("\0")
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if "webshop" in command and any(flag.endswith(f"/{shards}") for flag in command):
            yield parent


def test_an_evaluation_prints_what_the_command_prints(cluster: None, tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    new = ["model", "new", "--shape", "tiny", "--out", model]
    subprocess.run([sys.executable, "-m", "webshop", *new], check=True, capture_output=True)
    flags = ["--checkpoint", model, "--episodes", "4", "--max-steps", "2", "--max-turn-tokens", "8"]
    alone = subprocess.run([sys.executable, "-m", "webshop", "eval", *flags], check=True, capture_output=True, text=True)
    expected = [line for line in alone.stdout.splitlines() if not line.startswith("seconds")]
    assert webshop.ray.evaluate(flags, shards=3).splitlines() == expected
    with pytest.raises(ray.exceptions.RayTaskError, match="holds no checkpoint"):
        webshop.ray.evaluate(["--checkpoint", str(tmp_path / "none")], shards=1)


def test_faults_are_named(cluster: None, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(ray.exceptions.RayTaskError, match="take fewer parts"):
        webshop.ray.rollout(["--policy", "rule", "--episodes", "2"], out, shards=3)
    assert not out.exists()
    with pytest.raises(ValueError, match="`--json` cannot be given"):
        webshop.ray.rollout(["--json"], out, shards=1)
    out.write_text("")
    with pytest.raises(FileExistsError, match="name another file"):
        webshop.ray.rollout(FLAGS, out, shards=1)
