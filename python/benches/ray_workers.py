"""Rollouts and a short training run with 1, 2 and 4 workers of Ray beside the plain command: seconds, and equal bytes or an error.

    python python/benches/ray_workers.py CHECKPOINT [EPISODES]

The machine should have two idle cores, which all workers share. Seconds are of whole commands, with the start of Ray.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKERS = [1, 2, 4]
WEBSHOP = [sys.executable, "-m", "webshop"]
RAY = [sys.executable, "-m", "webshop.ray"]


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"\n{' '.join(command)}\n{ended.stderr}")
    return time.perf_counter() - began


def compare(name: str, verb: list[str], file: str) -> None:
    """Runs the command alone and with workers; `file` is what must be equal, below the path of `--out`."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder, "alone")
        plain = seconds([*WEBSHOP, *verb, "--out", str(alone)])
        print(f"| {name} | {plain:.1f} |", end="", flush=True)
        for n_workers in WORKERS:
            out = Path(folder, f"workers-{n_workers}")
            flags = ["--shards", str(n_workers), "--cpus-per-shard", str(min(1, 2 / n_workers)), "--out", str(out)]
            taken = seconds([*RAY, *verb, *flags])
            if (out / file).read_bytes() != (alone / file).read_bytes():
                sys.exit(f"\n{n_workers} workers gave other bytes")
            print(f" {taken:.1f} |", end="", flush=True)
        print()


def main() -> None:
    checkpoint, n_episodes = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "4000"
    print("| seconds | plain | " + " | ".join(f"{n} workers" for n in WORKERS) + " |")
    print("|---|" + "---|" * (len(WORKERS) + 1))
    rollout = ["rollout", "--policy", "lm", "--checkpoint", checkpoint, "--catalog", "1000", "--split", "train"]
    rollout += ["--episodes", n_episodes]
    compare(f"{n_episodes} episodes", rollout, "")
    compare("`train --preset quick`", ["train", "--preset", "quick"], "metrics.jsonl")
    start = seconds([sys.executable, "-c", "import ray; ray.init(log_to_driver=False)"])
    print(f"\n`ray.init` alone: {start:.1f} s")


if __name__ == "__main__":
    main()
