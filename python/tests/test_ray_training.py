"""Training runs whose episodes are made on a Ray cluster of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import learned_files


def on_ray(small_config: Path, run: Path, shards: int) -> list[str]:
    """The command, with a worker for each shard on two cores or more."""
    flags = ["--shards", str(shards), "--cpus-per-shard", str(min(1, 2 / shards))]
    run_flags = ["--config", str(small_config), "--out", str(run)]
    return [sys.executable, "-m", "webshop.ray", "train", *flags, *run_flags]


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_any_number_of_workers_gives_the_same_bytes(small_config: Path, alone: list[bytes], tmp_path: Path, shards: int) -> None:
    subprocess.run(on_ray(small_config, tmp_path / "run", shards), check=True, capture_output=True)
    assert learned_files(tmp_path / "run") == alone


def test_the_work_of_a_killed_worker_is_done_again(small_config: Path, alone: list[bytes], tmp_path: Path) -> None:
    training = subprocess.Popen(on_ray(small_config, tmp_path / "run", 3), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
    assert learned_files(tmp_path / "run") == alone


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
