"""Serves a model with vLLM, runs episodes with `webshop rollout --policy remote`, and stops the server.

    pip install ./python vllm
    python examples/vllm_rollout.py --model Qwen/Qwen2.5-3B-Instruct --episodes 200 --concurrency 64

vLLM batches the requests of concurrent episodes, so `--concurrency` should be large. The shop takes microseconds a step, in
this process, and needs no server. For several machines, serve the model on each, give each `--shard I/N`, and join the files
with `webshop merge`.

What was run: the same with `webshop serve --model` in vLLM's place, which speaks the same interface, and a random model:

    webshop model new --shape tiny --out random-model
    python examples/vllm_rollout.py --model random-model --server 'webshop serve --model {model} --port {port}' \
        --served-name webshop --episodes 2 --max-steps 2 --max-turn-tokens 8

What was not run: vLLM, which needs a GPU and the network.
"""

from __future__ import annotations

import argparse
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import hosted_model

import webshop

# How long a server may take to load a model, in seconds.
LIMIT = 1200


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Waits until an address answers. Raises RuntimeError if the server ends before."""
    for _ in range(LIMIT):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with exit code {server.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(1)
    raise RuntimeError(f"{url} did not answer within {LIMIT} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a model and evaluate it; other flags are those of `webshop rollout`.")
    parser.add_argument("--model", required=True, help="a model of the Hugging Face hub or a folder")
    parser.add_argument("--server", default="vllm serve {model} --port {port}", help="command that serves {model} on {port}")
    parser.add_argument("--served-name", help="the server's name of the model, if it has another")
    parser.add_argument("--catalog", default="100", help="100, 1000, or a folder with the original's files")
    parser.add_argument("--out", default="vllm.jsonl", help="file of the episodes")
    own, flags = parser.parse_known_args()
    port = free_port()
    command = [word.format(model=own.model, port=port) for word in shlex.split(own.server)]
    server = subprocess.Popen(command, stdout=sys.stderr)
    try:
        wait_for(f"http://127.0.0.1:{port}/v1/models", server)
        base_url, name = f"http://127.0.0.1:{port}/v1", own.served_name or own.model
        code = hosted_model.rollout(base_url, name, own.out, ["--catalog", own.catalog, *flags])
    finally:
        server.terminate()
        server.wait()
    if code == 0:
        hosted_model.report(own.out, webshop.Shop(own.catalog))
    sys.exit(code)


if __name__ == "__main__":
    main()
