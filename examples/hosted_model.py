"""Evaluates a hosted language model in the shop, and shows what its failures lack.

    pip install ./python
    export OPENAI_API_KEY=…
    python examples/hosted_model.py --base-url https://api.openai.com/v1 --model gpt-5-mini --api-key-env OPENAI_API_KEY

Any server with OpenAI's chat completions will do. A run that was interrupted goes on with `--resume`; finished episodes are
kept, and requests that failed are tried again. With Inspect AI instead, whose logs and models you may have already:

    pip install './python[inspect]'
    inspect eval webshop/webshop --model openai/gpt-5-mini -T n=100

What was run: this program against `webshop serve --model` on the same machine, with a random model, as
examples/vllm_rollout.py does it; the task of Inspect with its mock model, and as `inspect eval` against that server. What was
not run: a hosted model, which needs the network and a key.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import webshop


def rollout(base_url: str, model: str, out: str, flags: Sequence[str]) -> int:
    """Runs `webshop rollout --policy remote`; its exit code, 2 if episodes failed and were left out."""
    command = [sys.executable, "-m", "webshop", "rollout", "--policy", "remote"]
    return subprocess.run([*command, "--base-url", base_url, "--model", model, "--out", out, *flags]).returncode


def lacks(episode: webshop.Episode) -> list[str]:
    """What keeps the reward of an episode below 1."""
    parts = episode.breakdown
    if parts is None:
        return ["bought nothing"]
    return [
        text
        for text, is_met in [
            ("another kind of product", parts["r_type"] == 1.0),
            ("an attribute is missing", parts["attribute_matches"] == parts["n_attributes"]),
            ("an option is wrong", parts["option_matches"] == parts["n_options"]),
            ("too expensive", parts["price_ok"]),
        ]
        if not is_met
    ]


def report(out: str, shop: webshop.Shop) -> None:
    """Prints how the episodes of a file ended, and the transcript of a failure."""
    episodes = list(webshop.episodes(out))
    failures = [episode for episode in episodes if episode.reward < 1]
    print(f"{len(episodes)} episodes, {len(episodes) - len(failures)} of them with a reward of 1")
    for text, count in Counter(text for episode in failures for text in lacks(episode)).most_common():
        print(f"{count:5d}  {text}")
    if failures:
        print(f"\nOne of the failures:\n\n{failures[0].transcript(shop)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate a hosted model; other flags are those of `webshop rollout`.")
    parser.add_argument("--base-url", required=True, help="address of the model server, with /v1")
    parser.add_argument("--model", required=True, help="the server's name of the model")
    parser.add_argument("--catalog", default="100", help="100, 1000, or a folder with the original's files")
    parser.add_argument("--out", default="hosted.jsonl", help="file of the episodes")
    own, flags = parser.parse_known_args()
    code = rollout(own.base_url, own.model, own.out, ["--catalog", own.catalog, *flags])
    if code == 0:
        report(own.out, webshop.Shop(own.catalog))
    sys.exit(code)


if __name__ == "__main__":
    main()
