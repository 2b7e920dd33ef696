"""What the adapters are without their frameworks; `scripts/frameworks.sh` drives the frameworks themselves."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from conftest import play_oracle

import webshop
import webshop.trl

# The framework of each module, and what is asked of it first.
FRAMEWORKS = {
    "verifiers": "import webshop; webshop.load_environment",
    "inspect_ai": "import webshop.inspect_task",
    "openenv": "import webshop.openenv",
    "ray": "import webshop.ray",
    "verl": "import webshop.verl",
    "datasets": "import webshop.trl; webshop.trl.dataset('test', 1)",
}


def test_the_package_imports_no_framework() -> None:
    program = f"import sys, webshop, webshop.trl, webshop.export; print({{*sys.modules}} & {set(FRAMEWORKS)})"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert printed.stdout == "set()\n"


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_missing_framework_is_named(name: str) -> None:
    program = f"import sys; sys.modules[{name!r}] = None; {FRAMEWORKS[name]}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: `{name}` is not installed; `pip install './python["), ended.stderr


def test_trl_environments_are_a_class_of_python_functions(shop: webshop.Shop) -> None:
    kind = webshop.trl.environment(shop=shop)
    public = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    assert public == ["click", "get_reward", "reset", "search"]


def test_trl_environments_earn_what_sessions_earn(shop: webshop.Shop) -> None:
    first, second = (webshop.trl.environment(shop=shop, max_steps=40)() for _ in range(2))
    for goal in shop.goals("test")[:5]:
        session = webshop.Session(shop, goal, max_steps=40)
        first.reset(goal=goal, prompt=[])
        second.reset(goal=goal, prompt=[])
        shown = ""
        for action in play_oracle(session):
            name, words = action.removesuffix("]").split("[", 1)
            assert first.get_reward() == 0.0
            shown = getattr(first, name)(words)
        assert shown == "The purchase is made. The episode has ended."
        assert (first.get_reward(), second.get_reward()) == (session.reward, 0.0)
        with pytest.raises(ValueError, match="the episode has ended"):
            first.click("back to search")
        assert first.get_reward() == session.reward


def test_faults_are_named(shop: webshop.Shop) -> None:
    environment = webshop.trl.environment(shop=shop)()
    with pytest.raises(RuntimeError, match="call reset"):
        environment.search("shoes")
    with pytest.raises(ValueError, match="no goal 99999"):
        environment.reset(goal=99999)
    with pytest.raises(ValueError, match="give a shop or the arguments of one"):
        webshop.trl.environment("1000", shop=shop)
    with pytest.raises(AttributeError, match="has no attribute `load_environments`"):
        webshop.load_environments  # type: ignore[attr-defined]
