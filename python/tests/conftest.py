"""A shop, and an oracle that plays it."""

from __future__ import annotations

import pytest

import webshop


@pytest.fixture(scope="session")
def shop() -> webshop.Shop:
    return webshop.Shop()


def play_oracle(session: webshop.Session) -> list[str]:
    """Buys what earns the most, and returns the actions, in lower case as they are recorded."""
    best = session.shop.best_purchase(session.goal)
    title = session.shop.goal(session.goal)["title"]
    actions = [f"search[{title.lower()}]"]
    session.step(actions[0])
    while best["asin"].lower() not in session.available["clickables"]:
        assert session.noop is None, (session.goal, session.noop)
        actions.append("click[next >]")
        session.step(actions[-1])
    for label in [best["asin"].lower(), *best["clicks"], "buy now"]:
        actions.append(f"click[{label}]")
        session.step(actions[-1])
    return actions
