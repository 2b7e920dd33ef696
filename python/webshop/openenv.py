"""A typed client of `webshop serve` for OpenEnv 0.10 (github.com/meta-pytorch/OpenEnv).

OpenEnv's `GenericEnvClient` works too, with dictionaries. This one has types:

    with ShopClient(base_url="http://127.0.0.1:8000").sync() as env:
        result = env.reset(goal=3)
        result = env.step("search[coconut energy drink]")
        print(result.observation.text, result.reward, result.done)

A client is one session of the server, asynchronous unless `sync()` is called. `reset` takes `goal`, or `split` and `index`, or
`seed`; and `max_steps` and `observation`. The result's `metadata` names the versions and digests of the shop. A fault that the
server finds, such as an unknown goal, is OpenEnv's RuntimeError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webshop._frameworks import framework

framework("openenv", "openenv")
from openenv.core.client_types import StepResult  # pyright: ignore[reportMissingImports]
from openenv.core.env_client import EnvClient  # pyright: ignore[reportMissingImports]

from webshop._types import AvailableActions, RewardBreakdown, Split

__all__ = ["ShopClient", "ShopObservation", "ShopState"]


@dataclass(frozen=True)
class ShopObservation:
    """A page and what it is part of. `text` is in the observation mode of the reset; `noop` says why an action did nothing.

    `reward_parts` has the counts of a purchase, as `webshop.RewardBreakdown`; None before.
    """

    text: str
    instruction: str
    available_actions: AvailableActions
    url: str
    goal: int
    split: Split
    step: int
    terminated: bool
    truncated: bool
    noop: str | None
    reward_parts: RewardBreakdown | None


@dataclass(frozen=True)
class ShopState:
    """The state of an episode: `digest` is equal for equal states, and `seed` is what drew the goal."""

    episode_id: str | None
    step_count: int
    goal: int
    split: Split
    seed: int | None
    digest: str
    environment: str


class ShopClient(EnvClient[str, ShopObservation, ShopState]):  # type: ignore[misc]
    """A session of a server. Actions are texts, `search[words]` or `click[label]`; others pass the turn.

    Args:
        base_url: the server's address; other arguments are those of `openenv.core.env_client.EnvClient`.

    Raises:
        ConnectionError: if no server answers at the address.
    """

    def _step_payload(self, action: str) -> dict[str, Any]:
        return {"action": action}

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        fields = {name: payload["observation"].get(name) for name in ShopObservation.__dataclass_fields__}
        return StepResult(
            observation=ShopObservation(**fields),
            reward=payload["reward"],
            done=payload["done"],
            metadata=payload.get("metadata", payload["observation"].get("metadata")),
        )

    def _parse_state(self, payload: dict[str, Any]) -> ShopState:
        return ShopState(**{name: payload.get(name) for name in ShopState.__dataclass_fields__})  # type: ignore[arg-type]
