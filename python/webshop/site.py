"""The original's site environment, `WebAgentSiteEnv`, over plain HTTP: a client of the pages of `webshop serve`.

The original (princeton-nlp/WebShop, `envs/web_agent_site_env.py`) drives Chromium by Selenium and finds the page's parts by
their ids and classes. This one reads the same parts from the same documents and sends the same forms, without a browser. It
keeps the interface of gym 0.23. What differs from the original:

- The address is an argument; `http://127.0.0.1:3000`, which the original has built in, is its default.
- There is no window, so that `render=True` is refused.
- Observations are the documents that the server sends, and a browser's own serialization of them is a little different in
  the mode `html`. In the mode `text` they are those of `WebAgentTextEnv`; the page of a purchase says more after them.
- A piece of text that is only white space is left out, where the original leaves out single line ends.
- An action that is not on the page does nothing. The original raises KeyError for a label, and fails with clicks before the
  first call of `get_available_actions`. Labels are found in lower case too, as `WebAgentTextEnv` lists them.
- Names of sessions that are drawn come from `seed`, and not from the module `random`.
"""

from __future__ import annotations

import http.client
import importlib
import importlib.util
import random
import string
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Literal, get_args

from webshop._actions import END_BUTTON, parse_action
from webshop.spaces import Unicode

__all__ = ["DEFAULT_URL", "WebAgentSiteEnv"]

DEFAULT_URL = "http://127.0.0.1:3000"
TIMEOUT_SECONDS = 60.0
GymEnv: Any = importlib.import_module("gym" if importlib.util.find_spec("gym") else "gymnasium").Env
Mode = Literal["html", "text"]
# Elements that have no end tag.
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Elements whose text is not shown.
HIDDEN = {"style", "script", "head", "title", "meta"}


@dataclass
class Element:
    """An element of a page: its attributes, the text that it holds, and the form that it is in."""

    tag: str
    attributes: dict[str, str]
    form: Element | None
    text: str = ""
    # Of a form: the values that are chosen on the page, by the names of their fields.
    fields: dict[str, str] = field(default_factory=dict)

    def has_class(self, name: str) -> bool:
        """Whether `name` is one of its classes."""
        return name in self.attributes.get("class", "").split()


class Page(HTMLParser):
    """A document: its elements in order, and its visible texts."""

    def __init__(self, url: str, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url = url
        self.html = html
        self.elements: list[Element] = []
        self.texts: list[str] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        form = next((element for element in reversed(self._open) if element.tag == "form"), None)
        element = Element(tag, {name: value or "" for name, value in attrs}, form)
        self.elements.append(element)
        if is_option(element) and form is not None and "checked" in element.attributes:
            form.fields[element.attributes["name"]] = element.attributes["value"]
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Called by the parser."""
        if any(element.tag == tag for element in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Called by the parser."""
        for element in self._open:
            element.text += data
        if self._open and self._open[-1].tag not in HIDDEN and data.strip():
            self.texts.append(data.strip())

    def by_id(self, name: str) -> Element | None:
        """The first element with this id."""
        return next((element for element in self.elements if element.attributes.get("id") == name), None)

    def clickables(self) -> dict[str, Element]:
        """What the original finds: buttons, links of products and values of options, by what they are called."""
        marked = [element for name in ("btn", "product-link") for element in self.elements if element.has_class(name)]
        found = {" ".join(element.text.split()): element for element in marked}
        return found | {element.attributes["value"]: element for element in self.elements if is_option(element)}

    def inside(self, name: str, tag: str) -> str | None:
        """The text of the first `tag` after the element with this id."""
        start = self.by_id(name)
        if start is None:
            return None
        after = self.elements[self.elements.index(start) :]
        return next((element.text for element in after if element.tag == tag), None)


def is_option(element: Element) -> bool:
    """Whether it is a value of an option."""
    return element.tag == "input" and element.attributes.get("type") == "radio"


class WebAgentSiteEnv(GymEnv):  # type: ignore[misc]
    """`web_agent_site.envs.WebAgentSiteEnv`: `reset` returns (observation, None), `step` four values with info None.

    Args:
        observation_mode: "html", the document, or "text", its visible texts between " [SEP] ".
        url: the site's address.
        seed: of the names of sessions; None for names that nothing repeats.
        **kwargs: `session`, the name of every session, such as `fixed_3` for the goal 3; `pause`, the seconds to wait after
            an action; `render`, which must be false.

    Raises:
        ValueError: for another mode, and for `render`.
        TypeError: for an unknown keyword.
        ConnectionError: if no server answers at the address.
    """

    metadata: dict[str, Any] = {"render_modes": [], "render.modes": []}
    observation_space = action_space = Unicode()

    def __init__(
        self, observation_mode: Mode = "html", *, url: str = DEFAULT_URL, seed: int | None = None, **kwargs: Any
    ) -> None:
        unknown = sorted(set(kwargs) - {"session", "pause", "render", "num_products"})
        if unknown:
            raise TypeError(f"WebAgentSiteEnv has no keyword `{unknown[0]}`")
        if observation_mode not in get_args(Mode):
            raise ValueError(f"Observation mode {observation_mode} not supported.")
        if kwargs.get("render"):
            raise ValueError(f"there is no window to render; open {url} in a browser")
        self.observation_mode: Mode = observation_mode
        self.base_url = url.rstrip("/")
        self.kwargs = kwargs
        self.assigned_session: str | None = kwargs.get("session")
        self.session: str | None = None
        self.text_to_clickable: dict[str, Element] | None = None
        self.instruction_text = ""
        self._random = random.Random(seed)
        self._page: Page | None = None
        self.reset()

    def reset(self) -> Any:
        """Opens the start page of the session, or of a new one. Returns the observation and None."""
        drawn = "".join(self._random.choices(string.ascii_lowercase, k=5))
        self.session = drawn if self.assigned_session is None else self.assigned_session
        name = urllib.parse.quote(self.session, safe="")
        self._load(f"{self.base_url}/{name}")
        self.text_to_clickable = None
        self.instruction_text = self.get_instruction_text()
        return self.observation, None

    def step(self, action: str) -> Any:
        """Takes `search[words]`, `click[label]` or `end`; anything else does nothing.

        Returns the observation; the reward, which only a purchase earns; whether the purchase or `end` has ended the
        episode; and None.
        """
        name, argument = parse_action(action)
        clicked = False
        if name == "search" and argument:
            bar = self.page.by_id("search_input")
            if bar is not None:
                self._send(bar, {bar.attributes["name"]: argument})
        elif name == "click" and argument:
            clickables = self.page.clickables()
            lower = {label.lower(): element for label, element in reversed(clickables.items())}
            element = clickables.get(argument, lower.get(argument.lower()))
            if element is not None:
                clicked = True
                self._click(element)
        time.sleep(self.kwargs.get("pause", 0.0))
        is_bought = clicked and (argument or "").lower() == END_BUTTON.lower()
        return self.observation, self.get_reward() if clicked else 0.0, is_bought or name == "end", None

    def get_available_actions(self) -> Any:
        """`has_search_bar`, and the labels `clickables`, as the page shows them."""
        self.text_to_clickable = self.page.clickables()
        has_search_bar = self.page.by_id("search_input") is not None
        return {"has_search_bar": has_search_bar, "clickables": list(self.text_to_clickable)}

    def get_reward(self) -> float:
        """The reward that the page shows; 0 on a page without one."""
        shown = self.page.inside("reward", "pre")
        return 0.0 if shown is None else float(shown)

    def get_instruction_text(self) -> str:
        """The instruction that the page shows. Raises RuntimeError for a page without one."""
        shown = self.page.inside("instruction-text", "h4")
        if shown is None:
            raise RuntimeError(f"`{self.page.url}` shows no instruction; is it a page of `webshop serve`?")
        return shown

    @property
    def page(self) -> Page:
        """The page that is open. Raises RuntimeError before the first reset."""
        if self._page is None:
            raise RuntimeError("the environment was never reset; call reset() first")
        return self._page

    @property
    def observation(self) -> str:
        """The page in the observation mode."""
        return self.page.html if self.observation_mode == "html" else " [SEP] ".join(self.page.texts)

    @property
    def state(self) -> dict[str, Any]:
        """`url`, `html` and `instruction_text`."""
        return {"url": self.page.url, "html": self.page.html, "instruction_text": self.instruction_text}

    def render(self, mode: str = "human") -> Any:
        """Nothing, as in the original."""
        return None

    def close(self) -> None:
        """Nothing: there is no browser to close."""

    def _click(self, element: Element) -> None:
        if element.tag == "a":
            self._load(urllib.parse.urljoin(self.page.url, element.attributes["href"]))
            return
        name = element.attributes.get("name")
        self._send(element, {} if name is None else {name: element.attributes["value"]})

    def _send(self, element: Element, fields: dict[str, str]) -> None:
        """Sends the form of an element, as a browser without scripts does."""
        if element.form is None:
            raise RuntimeError(f"`{element.text.strip()}` on `{self.page.url}` belongs to no form")
        url = urllib.parse.urljoin(self.page.url, element.form.attributes.get("action", ""))
        self._load(url, urllib.parse.urlencode({**element.form.fields, **fields}).encode())

    def _load(self, url: str, data: bytes | None = None) -> None:
        try:
            with urllib.request.urlopen(url, data, timeout=TIMEOUT_SECONDS) as reply:
                self._page = Page(reply.url, reply.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                raise ConnectionError(f"`{url}` answered {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise ConnectionError(f"no server at `{url}`: {error.reason}; start `webshop serve`") from None
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(f"`{url}` gave no whole page: {error or type(error).__name__}") from None
