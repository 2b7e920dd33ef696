"""The original WebShop's text environment, with its interface of gym 0.23 and its rules.

A `WebAgentTextEnv` has a server and a browser; several environments may share a server. What differs from the original:

- Products, and human goals if they are asked for, come from the embedded catalogs unless `file_path` names the original's
  file. Nothing is downloaded.
- Draws come from a generator of the server's, in the original's order, and not from the module `random`. Prices of products
  with a range of prices are drawn from `seed`.
- After a purchase every action passes until the next reset.
- The observation mode "html" shows this package's documents, not the original's templates.
- There are no features of images: the original downloads them for its own products.
"""

from __future__ import annotations

import bisect
import functools
import importlib
import importlib.util
import itertools
import os
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import webshop
from webshop._actions import END_BUTTON, parse_action
from webshop._types import Observation
from webshop.legacy_goals import SHUFFLE_SEED, OriginalProduct, Products, original_goals

__all__ = ["END_BUTTON", "SimBrowser", "SimServer", "WebAgentTextEnv", "parse_action"]

# gym's class if it is installed, else that of the library with the same methods.
GymEnv: Any = importlib.import_module("gym" if importlib.util.find_spec("gym") else "gymnasium").Env
NO_LIMIT = 2**32 - 1
EMBEDDED = {100: "100", 1000: "1000", None: "1000"}
NO_IMAGES = "features of images are not there: they are the original's `feat_conv.pt`; leave out `get_image`"


class SimServer:
    """Goals, and the sessions of all environments that share the server.

    Args:
        base_url: the address in URLs; only `http://127.0.0.1:3000` is served.
        file_path: None for an embedded catalog, or the original's `items_shuffle….json`; the two other files lie beside it.
        filter_goals: keeps a goal if it returns true for its number and the goal.
        limit_goals: draws so many goals by weight; -1 for all.
        num_products: only so many products; 100, 1000 or None choose an embedded catalog, None that of 1000.
        human_goals: instructions of people instead of generated ones.
        seed: of prices, and of draws if it is not None.

    Attributes:
        goals: dictionaries with the original's fields, in the original's order; other servers share them.
        weights, cum_weights: of the goals.
        product_item_dict, all_products, product_prices: products by ASIN, as a list, and what they cost in dollars.
        user_sessions: by session name, a dictionary with `goal`, `done`, and after a purchase `reward`.
        shop: the `webshop.Shop`.

    Raises:
        ValueError: for a file that is not there, and a size that no embedded catalog has.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:3000",
        file_path: str | os.PathLike[str] | None = None,
        filter_goals: Callable[[int, dict[str, Any]], bool] | None = None,
        limit_goals: int = -1,
        num_products: int | None = None,
        human_goals: bool | int | None = False,
        show_attrs: bool = False,
        seed: int | None = None,
    ) -> None:
        if show_attrs:
            raise ValueError("the page of attributes is not shown; leave out `show_attrs`")
        self.base_url = base_url
        style: Literal["human", "synthetic"] = "human" if human_goals else "synthetic"
        catalog, size = _catalog(file_path, num_products)
        self.shop, goals = original_goals(catalog, size, style, seed or 0)
        self.goals = list(goals)
        # The original seeds so before it shuffles the goals; the shop has them in that order.
        self.random = random.Random(SHUFFLE_SEED)
        self.random.shuffle(list(goals))
        if seed is not None:
            self.random = random.Random(seed)
        if filter_goals is not None:
            self.goals = [goal for number, goal in enumerate(self.goals) if filter_goals(number, goal)]
        if limit_goals != -1 and limit_goals < len(self.goals):
            self._weigh()
            drawn: dict[int, None] = {}
            while len(drawn) < limit_goals:
                drawn[self.random_goal()] = None
            self.goals = [self.goals[number] for number in drawn]
        self._weigh()
        self.user_sessions: dict[str, dict[str, Any]] = {}

    @functools.cached_property
    def product_item_dict(self) -> Products:
        """The products by ASIN, with the original's field names."""
        return Products(self.shop)

    @property
    def all_products(self) -> list[OriginalProduct]:
        """The products in the order of the catalog."""
        return list(self.product_item_dict.values())

    @functools.cached_property
    def product_prices(self) -> dict[str, float]:
        """What products cost, in dollars, by ASIN."""
        return {asin: self.shop.product(asin)["price"]["paid"] / 100 for asin in self.shop.asins}

    def _weigh(self) -> None:
        self.weights = [goal["weight"] for goal in self.goals]
        self.cum_weights = [0, *itertools.accumulate(self.weights)]

    def random_goal(self) -> int:
        """A place in `goals`, drawn by weight."""
        place = bisect.bisect(self.cum_weights, self.random.uniform(0, self.cum_weights[-1]))
        return min(place, len(self.goals) - 1)

    def start(self, session_id: str, session_int: int | None) -> webshop.Session:
        """The session at the search bar: a known name keeps its goal, an int chooses one, else one is drawn.

        Raises ValueError for a number that is not a goal's.
        """
        if session_id not in self.user_sessions:
            place = self.random_goal() if session_int is None else session_int
            if not -len(self.goals) <= place < len(self.goals):
                raise ValueError(f"there is no goal {place}: the server has {len(self.goals)}")
            self.user_sessions[session_id] = {"goal": self.goals[place], "done": False}
        goal = self.user_sessions[session_id]["goal"]["id"]
        return webshop.Session(self.shop, goal, max_steps=NO_LIMIT, name=session_id)


class SimBrowser:
    """The page at which an environment is."""

    def __init__(self, server: SimServer) -> None:
        self.server = server
        self.session_id: str | None = None
        self.session: webshop.Session | None = None

    def get(self, url: str, session_id: str | None = None, session_int: int | None = None) -> None:
        """Opens the search bar of the session that the address ends with."""
        self.session_id = url.split("/")[-1] if session_id is None else session_id
        self.session = self.server.start(self.session_id, session_int)

    @property
    def page_source(self) -> str | None:
        """The page's HTML; None before `get`."""
        return None if self.session is None else self.session.html

    @property
    def current_url(self) -> str | None:
        """The page's address; None before `get`."""
        return None if self.session is None else self.session.url


class WebAgentTextEnv(GymEnv):  # type: ignore[misc]
    """`web_agent_site.envs.WebAgentTextEnv`: `reset` returns (observation, None), `step` four values with info None.

    Args:
        observation_mode: "html", "text", "text_rich" or "url".
        file_path: as of `SimServer`.
        server: a server to share; then the keywords of one are not read.
        **kwargs: `filter_goals`, `limit_goals`, `num_products`, `human_goals`, `show_attrs` and `seed` of the server;
            `session`, `session_prefix`, `num_prev_obs` and `num_prev_actions` as in the original.

    Raises:
        ValueError: for an unknown observation mode, and as `SimServer`.
        TypeError: for an unknown keyword.
    """

    metadata: dict[str, Any] = {"render_modes": [], "render.modes": []}
    observation_space = action_space = webshop.Unicode()
    _SERVER = ("filter_goals", "limit_goals", "num_products", "human_goals", "show_attrs", "seed")
    _OWN = ("session", "session_prefix", "num_prev_obs", "num_prev_actions", "get_image", "attr_path", "render_mode")

    def __init__(
        self,
        observation_mode: Observation = "html",
        file_path: str | os.PathLike[str] | None = None,
        server: SimServer | None = None,
        **kwargs: Any,
    ) -> None:
        unknown = sorted(set(kwargs) - {*self._SERVER, *self._OWN})
        if unknown:
            raise TypeError(f"WebAgentTextEnv has no keyword `{unknown[0]}`")
        if kwargs.get("get_image"):
            raise ValueError(NO_IMAGES)
        if observation_mode not in get_args(Observation):
            raise ValueError(f"Observation mode {observation_mode} not supported.")
        self.observation_mode: Observation = observation_mode
        self.file_path = file_path
        self.kwargs = kwargs
        self.base_url = "http://127.0.0.1:3000"
        of_server = {name: kwargs[name] for name in self._SERVER if name in kwargs}
        self.server = SimServer(self.base_url, file_path, **of_server) if server is None else server
        self.browser = SimBrowser(self.server)
        self.session: str = str(kwargs.get("session"))
        self.session_prefix: str | None = kwargs.get("session_prefix")
        self.num_prev_obs: int = kwargs.get("num_prev_obs", 0)
        self.num_prev_actions: int = kwargs.get("num_prev_actions", 0)
        self.prev_obs: list[str] = []
        self.prev_actions: list[str] = []
        self.text_to_clickable: dict[str, str] | None = None
        self.instruction_text = ""
        self._drawn_name: str | None = None
        self.reset()

    def reset(self, session: int | str | None = None, instruction_text: str | None = None) -> Any:
        """Starts a session: of the goal with this number, of this name, or of a drawn name and goal.

        Returns the observation and None. Raises ValueError for a number that is not a goal's.
        """
        # The original keeps the sessions of drawn names, though nothing finds them again.
        if self._drawn_name is not None:
            self.server.user_sessions.pop(self._drawn_name, None)
        if session is None:
            self.session = "".join(self.server.random.choices(string.ascii_lowercase, k=10))
        else:
            self.session = str(session)
        if self.session_prefix is not None:
            self.session = self.session_prefix + self.session
        self._drawn_name = self.session if session is None else None
        number = session if isinstance(session, int) else None
        self.browser.get(f"{self.base_url}/{self.session}", session_id=self.session, session_int=number)
        self.text_to_clickable = None
        self.instruction_text = self._place().instruction if instruction_text is None else instruction_text
        observation = self._place().observe(self.observation_mode)
        self.prev_obs, self.prev_actions = [observation], []
        return observation, None

    def step(self, action: str) -> Any:
        """Takes `search[words]` or `click[label]`; anything else does nothing.

        Returns the observation, after the last observations and actions that were asked for; the reward; whether a purchase
        has ended the episode; and None.
        """
        place = self._place().step(action)
        if place.terminated:
            self.server.user_sessions[self.session] |= {"done": True}
            if place.breakdown is not None:
                self.server.user_sessions[self.session] |= {"reward": place.reward}
        observation = place.observe(self.observation_mode)
        self.prev_actions.append(action)
        texts = [observation]
        for at in range(1, 1 + max(self.num_prev_obs, self.num_prev_actions)):
            if len(self.prev_actions) >= at and self.num_prev_actions >= at:
                texts.append(self.prev_actions[-at])
            if len(self.prev_obs) >= at and self.num_prev_obs >= at:
                texts.append(self.prev_obs[-at])
        self.prev_obs.append(observation)
        return " [SEP] ".join(reversed(texts)), place.reward, place.terminated, None

    def get_available_actions(self) -> Any:
        """`has_search_bar`, and the labels `clickables`."""
        available = self._place().available
        self.text_to_clickable = {label: label for label in available["clickables"]}
        return available

    def get_instruction_text(self) -> str:
        """The text of the session's goal."""
        return self._place().instruction

    def get_image(self) -> Any:
        """Raises RuntimeError: there are no features of images."""
        raise RuntimeError(NO_IMAGES)

    @property
    def observation(self) -> str:
        """The page in the observation mode."""
        return self._place().observe(self.observation_mode)

    @property
    def state(self) -> dict[str, Any]:
        """`url`, `html` and `instruction_text`."""
        place = self._place()
        return {"url": place.url, "html": place.html, "instruction_text": self.instruction_text}

    def render(self, mode: str = "human") -> Any:
        """Nothing, as in the original."""
        return None

    def close(self) -> None:
        """Nothing, as in the original."""

    def _place(self) -> webshop.Session:
        if self.browser.session is None:
            raise RuntimeError("the environment was never reset; call reset() first")
        return self.browser.session


def _catalog(file_path: str | os.PathLike[str] | None, num_products: int | None) -> tuple[str, int | None]:
    if file_path is None:
        if num_products not in EMBEDDED:
            raise ValueError(f"no embedded catalog has {num_products} products; use 100 or 1000, or give `file_path`")
        return EMBEDDED[num_products], None
    path = Path(file_path)
    if not path.exists():
        raise ValueError(f"`{path}` does not exist; leave out `file_path` for an embedded catalog")
    if path.is_dir():
        return str(path), num_products
    if not path.name.startswith("items_shuffle"):
        raise ValueError(f"`{path}` has not the name of the original's files, `items_shuffle*.json`; rename it, or give its folder")
    # Of the files in a folder the short one is read if so few products are asked for.
    return str(path.parent), 1000 if num_products is None and "_1000" in path.name else num_products
