"""The dictionaries that the library returns."""

from __future__ import annotations

from typing import Literal, TypedDict

Split = Literal["train", "validation", "test", "all"]
SplitRule = Literal["by-family", "by-product", "paper", "verl-agent"]
Observation = Literal["text", "text_rich", "html", "json", "url"]
# Those of environments, which keep the prompt of an episode.
EnvObservation = Literal["text", "text_rich", "html", "json", "url", "compact"]


class AvailableActions(TypedDict):
    """What can be done on a page."""

    has_search_bar: bool
    clickables: list[str]


class Hit(TypedDict):
    """A result of a search; the price in dollars, the score that of BM25."""

    asin: str
    title: str
    price: float
    score: float


class WantedOption(TypedDict):
    """A required option value; human goals have no names."""

    name: str | None
    value: str


class Goal(TypedDict):
    """An instruction and the criteria of its reward; the price limit in cents."""

    id: int
    product: int
    asin: str
    department: str
    query: str
    title: str
    product_category: str
    instruction: str
    attributes: list[str]
    options: list[WantedOption]
    price_limit: int | None
    weight: float
    style: Literal["human", "synthetic"]


class OptionValue(TypedDict):
    """A value of an option, and the address of its image if it has one."""

    text: str
    image: str | None


class OptionGroup(TypedDict):
    """An option, such as the color, with its values in the order of the page."""

    name: str
    values: list[OptionValue]


class Price(TypedDict):
    """The price tag, the least and the greatest amount that it names, and the price charged, in cents."""

    tag: str
    low: int
    high: int
    paid: int


class Product(TypedDict):
    """A product of the catalog."""

    id: str
    title: str
    description: str
    bullets: list[str]
    attributes: list[str]
    department: str
    query: str
    product_category: str
    options: list[OptionGroup]
    price: Price
    image: str


class RewardBreakdown(TypedDict):
    """How many requirements a purchase meets, the factor for the kind of product, and the reward, 0 to 1."""

    query_match: bool
    category_match: bool
    shared_nouns: int
    goal_nouns: int
    attribute_matches: int
    n_attributes: int
    option_matches: int
    n_options: int
    price_ok: bool
    r_type: float
    total: float


class Explanation(TypedDict):
    """A purchase, requirement by requirement; `paid` and `limit` in dollars, `text` for people."""

    reward: float
    breakdown: RewardBreakdown
    text: str
    attributes: list[tuple[str, bool]]
    options: list[tuple[str, str | None]]
    paid: float
    limit: float | None


class Purchase(TypedDict):
    """A product, the values of its options by name, and the labels to click on its page to select them."""

    asin: str
    options: dict[str, str]
    clicks: list[str]


class Check(TypedDict):
    """A property of a shop: whether it holds, and the measured numbers."""

    check: str
    passed: bool
    measured: str


class _Message(TypedDict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Message(_Message, total=False):
    """A message of a chat, as in OpenAI's interface; `tool_call_id` only if its role is `tool`."""

    tool_call_id: str


class GoalRow(Goal):
    """A goal as a row of a table: with its split, the rule that divides the goals, and the digest of all goals."""

    split: Split
    split_rule: SplitRule
    digest: str


class EpisodeRow(TypedDict):
    """A recorded episode as a row of a table; `completions` and `noops` have an entry for each action."""

    goal: int
    instruction: str | None
    policy: str | None
    model: str | None
    prompt_format: str | None
    sample: int | None
    actions: list[str]
    completions: list[str]
    noops: list[str]
    reward: float
    success: bool
    terminated: bool
    truncated: bool
    breakdown: RewardBreakdown | None
    goal_fingerprint: str
    record: str


class _Info(TypedDict):
    goal: int
    instruction: str
    noop: str | None
    step: int
    digest: str
    available_actions: AvailableActions


class Info(_Info, total=False):
    """What a step is described by; `reward_parts` only after a purchase."""

    reward_parts: RewardBreakdown
