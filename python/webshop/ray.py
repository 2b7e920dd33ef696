"""Rollouts, evaluations and training on a Ray cluster.

    python -m webshop.ray rollout [flags of webshop rollout] --shards N --out FILE.jsonl [--address auto] [--cpus-per-shard C]
    python -m webshop.ray eval [flags of webshop eval] --shards N [--address auto] [--cpus-per-shard C]
    python -m webshop.ray train [flags of webshop train] --shards N [--out RUN] [--address auto] [--cpus-per-shard C]

A rollout's tasks run `webshop rollout --shard I/N` as processes of their own. An evaluation is such a rollout, of whose episodes
`webshop eval --recorded` prints the result. A training runs on the node where it is started;
its tasks make the training episodes and the rollouts of the reference policy, with weights that travel through Ray's
object store. Ray places the tasks and repeats those whose worker dies. The files have the bytes that one `webshop rollout` or
one `webshop train` writes, for any number of shards and workers, because every draw is addressed by the episode's
coordinates; of a training, if all processors compute the same bits.

Files that the flags name, such as a checkpoint or a catalog, must be there on every node. Needs Ray: `pip install
webshop[ray]`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from webshop._frameworks import framework
from webshop.training import EpisodeRequest, RolloutWorker
from webshop.training import train as train_by

ray: Any = framework("ray", "ray")

__all__ = ["evaluate", "main", "rollout", "train"]


def rollout(
    arguments: Sequence[str],
    out: str | os.PathLike[str],
    *,
    shards: int,
    cpus_per_shard: float = 1.0,
    retries: int = 3,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Runs the episodes of `webshop rollout` on Ray and writes them to a new file. Returns their number.

    Args:
        arguments: flags of `webshop rollout` but `--out`, `--shard` and `--json`.
        out: the file; written whole once all shards are there.
        shards: the number of tasks; at most the number of episodes.
        cpus_per_shard: processors that a task takes, and threads of its process, at least one.
        retries: how often a shard is run again whose worker has died.
        progress: called with the number of shards that are done and of all.

    Raises:
        FileExistsError, FileNotFoundError: if the file exists, or its folder does not.
        ValueError: for flags that this function sets, and fewer than one shard.
        ray.exceptions.RayTaskError: if a shard fails; its text has the command's error.
    """
    taken = [flag for flag in arguments if flag.split("=")[0] in ("--out", "--shard", "--json")]
    if taken:
        raise ValueError(f"`{taken[0]}` cannot be given to the shards")
    if shards < 1:
        raise ValueError(f"there is at least 1 shard, not {shards}")
    if Path(out).exists():
        raise FileExistsError(f"`{out}` already exists; name another file")
    if not Path(out).parent.is_dir():
        raise FileNotFoundError(f"`{Path(out).parent}`, where `{out}` would be, is no folder")
    if not ray.is_initialized():
        ray.init()
    command = ["rollout", *arguments]
    if not any(flag.split("=")[0] == "--threads" for flag in arguments):
        command += ["--threads", str(max(1, int(cpus_per_shard)))]
    task: Any = ray.remote(num_cpus=cpus_per_shard, max_retries=retries)(_shard)
    running = {task.remote(command, number, shards): number for number in range(1, shards + 1)}
    parts: dict[int, bytes] = {}
    try:
        while running:
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            parts[running.pop(done)] = ray.get(done)
            if progress is not None:
                progress(len(parts), shards)
    except BaseException:
        for unfinished in running:
            ray.cancel(unfinished)
        raise
    whole = b"".join(parts[number] for number in sorted(parts))
    with open(out, "xb") as file:
        try:
            file.write(whole)
        except OSError:
            os.unlink(out)
            raise
    return whole.count(b"\n")


def evaluate(arguments: Sequence[str], *, shards: int, cpus_per_shard: float = 1.0, retries: int = 3) -> str:
    """Runs the episodes of `webshop eval` on Ray. Returns what the command prints, without the seconds.

    Args:
        arguments: flags of `webshop eval`.
        shards, cpus_per_shard, retries: as of `rollout`.

    Raises:
        ValueError, ray.exceptions.RayTaskError: as `rollout`.
        RuntimeError: if the result cannot be computed; the text has the command's error.
    """
    of_rollout = [flag for flag in arguments if flag not in ("--json", "--no-baselines")]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "episodes.jsonl"
        rollout(
            ["--policy", "lm", *of_rollout], file, shards=shards, cpus_per_shard=cpus_per_shard, retries=retries
        )
        command = [sys.executable, "-m", "webshop", "eval", *arguments, "--recorded", str(file)]
        ended = subprocess.run(command, capture_output=True)
        if ended.returncode != 0:
            raise RuntimeError(ended.stderr.decode(errors="replace").strip()[-2000:])
        return ended.stdout.decode()


def _shard(command: list[str], number: int, of: int) -> bytes:
    """The lines of one shard."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shard.jsonl"
        flags = ["--shard", f"{number}/{of}", "--out", str(file)]
        ended = subprocess.run(
            [sys.executable, "-m", "webshop", *command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if ended.returncode != 0:
            raise RuntimeError(f"shard {number}/{of}: {ended.stderr.decode(errors='replace').strip()[-2000:]}")
        return file.read_bytes()


def train(arguments: Sequence[str], *, shards: int, cpus_per_shard: float = 1.0, retries: int = 3) -> int:
    """Runs `webshop train` here, with training episodes that are made on Ray. Returns the exit code of the command.

    Once in a process, as `webshop.training.train`. A worker generates the training shops at its first task and keeps them.

    Args:
        arguments: flags of `webshop train`.
        shards: the number of tasks that a batch of episodes is divided into.
        cpus_per_shard: processors that a task takes, and threads of its worker, at least one.
        retries: how often a task is run again whose worker has died.

    Raises:
        ValueError: for fewer than one shard.
    """
    if shards < 1:
        raise ValueError(f"there is at least 1 shard, not {shards}")
    if not ray.is_initialized():
        ray.init()
    threads = {"env_vars": {"RAYON_NUM_THREADS": str(max(1, int(cpus_per_shard)))}}
    task: Any = ray.remote(num_cpus=cpus_per_shard, max_retries=retries, runtime_env=threads)(_episodes)

    def answer(request: EpisodeRequest) -> list[str]:
        weights = ray.put({file.name: file.read_bytes() for file in Path(request.model).iterdir()})
        size = -(-len(request.coordinates) // shards)
        parts = [request.coordinates[first : first + size] for first in range(0, len(request.coordinates), size)]
        pending = [task.remote(request._replace(model="", coordinates=part), weights) for part in parts]
        return [line for lines in ray.get(pending) for line in lines]

    return train_by(arguments, answer)


_workers: dict[str, RolloutWorker] = {}
"""The worker of this process, by its configuration."""


def _episodes(request: EpisodeRequest, weights: dict[str, bytes]) -> list[str]:
    """The lines of the episodes of one request, made with the files of a model folder."""
    if request.config not in _workers:
        _workers.clear()
        _workers[request.config] = RolloutWorker(request.config)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in weights.items():
            Path(folder, name).write_bytes(data)
        _, _, temperature, top_p, coordinates = request
        return _workers[request.config].rollout(folder, temperature, top_p, coordinates)


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m webshop.ray", description="Rollouts, evaluations and training on a Ray cluster.")
    parser.add_argument("command", choices=["rollout", "eval", "train"])
    parser.add_argument("--shards", type=int, required=True, help="number of tasks, of a training for each batch")
    parser.add_argument("--address", help="the cluster, such as `auto`; by default a new one on this machine")
    parser.add_argument("--cpus-per-shard", type=float, default=1.0, help="processors of a task")
    own, arguments = parser.parse_known_args()
    if own.command == "rollout":
        parser.add_argument("--out", required=True, help="new file of all episodes")
        own, arguments = parser.parse_known_args()
    ray.init(address=own.address, log_to_driver=False)
    if own.command == "train":
        # Ray's own handler would wait until the command returns.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.exit(train(arguments, shards=own.shards, cpus_per_shard=own.cpus_per_shard))
    if own.command == "eval":
        print(evaluate(arguments, shards=own.shards, cpus_per_shard=own.cpus_per_shard), end="")
        return

    def show(done: int, of: int) -> None:
        print(f"shards: {done}/{of}", file=sys.stderr)

    n_episodes = rollout(arguments, own.out, shards=own.shards, cpus_per_shard=own.cpus_per_shard, progress=show)
    print(f"{n_episodes} episodes of {own.shards} shards")


if __name__ == "__main__":
    main()
