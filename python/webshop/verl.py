"""Training by verl 0.9.1 (github.com/volcengine/verl): the shop as an agent loop, its data set, and a reward function.

`WebShopAgentLoop` runs in verl's own AgentLoopWorkers: the shop is in their process, the model behind verl's inference
server. It shows the prompt format `agentgym-react`. It is registered as `webshop` by a file that the configuration names:

    python -m webshop.verl rows --split train --out train.parquet
    python -m webshop.verl rows --split validation --out validation.parquet
    python -m webshop.verl config --out agent.yaml

    actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml

A row names its agent loop, its goal and its shop; the loop refuses a row that was made in another shop. The loop returns the
reward, so that verl calls no reward function; `compute_score` computes it again from the recorded actions, for code that
scores responses of its own.

The prompts are those of `webshop rollout --prompt-format agentgym-react`, byte for byte, so that what verl trains is
evaluated there. Tokens of completions are kept as they were sampled and have mask 1; those of pages have mask 0. A page for which there is no
room is left out, and the episode ends there without a reward.

What was run: `scripts/frameworks/check_verl.py`, on a CPU with scripted tokens. What was not: a training on GPUs.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import webshop
from webshop._frameworks import framework

framework("verl", "verl")
from verl.experimental.agent_loop.agent_loop import (  # pyright: ignore[reportMissingImports]
    AgentLoopBase,
    AgentLoopOutput,
    register,
)
from verl.utils.profiler import simple_timer  # pyright: ignore[reportMissingImports]
from webshop._types import Split, SplitRule
from webshop.prompts import AgentgymReact
from webshop.verl_data import open_shop, rows, score

__all__ = ["WebShopAgentLoop", "compute_score", "write_config", "write_rows"]


@register("webshop")
class WebShopAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """One episode in verl: `run` returns its tokens, masks and reward.

    Args:
        max_steps: actions after which an episode is truncated; a key of the configuration file.
        *arguments, **keywords: verl's own.
    """

    def __init__(self, *arguments: Any, max_steps: int = 15, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.max_steps = max_steps

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """Plays the episode of a row.

        Args:
            sampling_params: of the inference server.
            row: the columns of `webshop.verl_data.rows`.

        Returns:
            AgentLoopOutput: `prompt_ids`, of the row's messages; `response_ids`, `response_mask` and, if the server gives
            them, `response_logprobs`, each of at most `rollout.response_length` items, 0.0 for tokens of pages;
            `reward_score`, 0 to 1; and in `extra_fields` the actions as `webshop_actions`, and as `reward_extra_info`, which verl
            logs, `acc`, 1 for a full reward and else 0, and `bought`, 1 or 0.

        Raises:
            ValueError: for a row of another shop.
        """
        length: int = self.rollout_config.response_length
        goal = int(row["extra_info"]["goal"])
        shop = await asyncio.to_thread(open_shop, row["extra_info"])
        session = webshop.Session(shop, goal, max_steps=self.max_steps)
        prompts = AgentgymReact()
        messages: list[Any] = list(prompts.begin(session))
        actions: list[str] = []
        metrics: dict[str, Any] = {}
        request = uuid4().hex
        tokens: list[int] = await self.ct_build_initial_tokens(messages)
        mask: list[int] = []
        logprobs: list[float] | None = None
        extra_fields: dict[str, Any] = {}
        # Pages that were shown and completions; the first page is in the prompt.
        n_turns = 1
        while True:
            with simple_timer("generate_sequences", metrics):
                output = await self.server_manager.generate(
                    request_id=request, prompt_ids=tokens, sampling_params=sampling_params
                )
            extra_fields = first_minimum(extra_fields, output.extra_fields)
            if not mask and output.log_probs:
                logprobs = []
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                tokens, output.token_ids, mask, logprobs, assistant_logprobs=output.log_probs or None
            )
            tokens, n_turns = merged.token_ids, n_turns + 1
            # A completion that is cut by the limit was not finished, and does not act.
            if len(mask) > length or output.stop_reason == "aborted":
                break
            completion = {
                "role": "assistant",
                "content": self.tokenizer.decode(output.token_ids, skip_special_tokens=True),
            }
            actions.append(prompts.action(completion))
            with simple_timer("tool_calls", metrics):
                session.step(actions[-1])
            if session.done:
                break
            before = [*messages, completion]
            messages = before + prompts.reply(session, completion)
            merged, longer_mask, longer_logprobs = await self.ct_merge_context_msg(
                before, messages, tokens, mask, logprobs
            )
            if len(longer_mask) >= length:
                break
            tokens, mask, logprobs, n_turns = merged.token_ids, longer_mask, longer_logprobs, n_turns + 1
        n_prompt = len(tokens) - len(mask)
        return AgentLoopOutput(
            prompt_ids=tokens[:n_prompt],
            response_ids=tokens[n_prompt:][:length],
            response_mask=mask[:length],
            response_logprobs=None if logprobs is None else logprobs[:length],
            reward_score=session.reward if session.terminated else 0.0,
            num_turns=n_turns,
            metrics=metrics,
            extra_fields=extra_fields
            | {
                "webshop_actions": actions,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": {
                    "acc": float(session.terminated and session.reward == 1.0),
                    "bought": float(session.terminated),
                },
            },
        )


def first_minimum(before: dict[str, Any], turn: dict[str, Any]) -> dict[str, Any]:
    """The fields of an inference server after another turn: the oldest version of the weights is that of the first."""
    merged = before | turn
    if "min_global_steps" in before:
        merged["min_global_steps"] = before["min_global_steps"]
    return merged


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: dict[str, Any], **_of_verl: Any
) -> dict[str, Any]:
    """verl's reward function: the reward of the actions that the agent loop recorded, as `webshop.verl_data.score`.

    Raises:
        ValueError: for a row of another shop, and for a response without recorded actions: pages name actions too, so that
            they cannot be read from `solution_str`.
    """
    if "webshop_actions" not in extra_info:
        raise ValueError("the response has no `webshop_actions`; its row must name the agent loop `webshop`")
    return score(open_shop(extra_info), int(extra_info["goal"]), list(extra_info["webshop_actions"]))


def write_rows(file: str | Path, shop: webshop.Shop, **which: Any) -> int:
    """Writes the rows of `webshop.verl_data.rows` as a Parquet file, and returns their number.

    Raises:
        ValueError: as `rows` does, and if there are none.
    """
    table = list(rows(shop, **which))
    if not table:
        raise ValueError("there are no goals to write")
    parquet = framework("pyarrow.parquet", "verl")
    parquet.write_table(framework("pyarrow", "verl").Table.from_pylist(table), file)
    return len(table)


def write_config(file: str | Path, *, max_steps: int = 15) -> None:
    """Writes the file for `actor_rollout_ref.rollout.agent.agent_loop_config_path`."""
    # Not by the class: its module is `__main__` in the command line.
    text = f"- name: webshop\n  _target_: webshop.verl.WebShopAgentLoop\n  max_steps: {max_steps}\n"
    Path(file).write_text(text, encoding="utf-8")


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m webshop.verl", description="Files for training by verl.")
    commands = parser.add_subparsers(dest="command", required=True)
    data = commands.add_parser("rows", help="a data set, one row a goal")
    data.add_argument("--out", required=True, help="the Parquet file")
    data.add_argument("--catalog", default="100", help="`100`, `1000`, or a folder with the original's files")
    data.add_argument("--size", type=int, help="only the first so many products")
    data.add_argument("--goals", choices=["both", "human", "synthetic"], help="which instructions become goals")
    data.add_argument("--compat", default="repaired", choices=["repaired", "original"], help="the rules of the shop")
    data.add_argument("--seed", type=int, default=0, help="of prices and price limits")
    data.add_argument("--split", default="train", choices=get_args(Split))
    data.add_argument("--split-rule", default="by-family", choices=get_args(SplitRule), help="the rule that divides the goals")
    config = commands.add_parser("config", help="the configuration of the agent loop")
    config.add_argument("--out", required=True, help="the YAML file")
    config.add_argument("--max-steps", type=int, default=15, help="actions after which an episode is truncated")
    arguments = parser.parse_args()
    if arguments.command == "rows":
        shop = webshop.Shop(
            arguments.catalog,
            size=arguments.size,
            goals=arguments.goals,
            compat=arguments.compat,
            seed=arguments.seed,
        )
        n_rows = write_rows(arguments.out, shop, split=arguments.split, split_rule=arguments.split_rule)
        print(f"{n_rows} rows")
    else:
        write_config(arguments.out, max_steps=arguments.max_steps)


if __name__ == "__main__":
    main()
