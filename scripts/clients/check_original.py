"""The original's own `WebAgentSiteEnv`, out of a checkout of its repository that `WEBSHOP_ORIGINAL` names.

Its package imports a search engine, a web framework and a language model for the shop itself. The class that drives a
browser uses none of them, so that they need not be installed: empty modules stand in their places. It has the address
http://127.0.0.1:3000 built in.
"""

import contextlib
import os
import sys
import tempfile
from unittest.mock import MagicMock

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import shop

# All that the package imports and that is not installed.
OTHERS = ("cleantext", "flask", "pyserini", "pyserini.search", "pyserini.search.lucene", "rank_bm25", "rich", "tqdm",
          "web_agent_site.envs.web_agent_text_env")
sys.modules.update((name, MagicMock()) for name in OTHERS)
sys.path.insert(0, os.environ["WEBSHOP_ORIGINAL"])

from web_agent_site.envs.web_agent_site_env import WebAgentSiteEnv  # noqa: E402

CHROME, PORT, PAUSE = webdriver.Chrome, 3000, 0.5
LAST_WORDS = "Reward Details [SEP] None"


def chrome(options, **_of_the_class):
    """The browser and the driver of `clients.sh`, where the class has a driver in its own folder."""
    options.binary_location = os.environ["CHROMIUM"]
    options.add_argument("--no-sandbox")
    return CHROME(options=options, service=Service(os.environ["CHROMEDRIVER"]))


webdriver.Chrome = chrome


def check(env: WebAgentSiteEnv, text: str, reward: float, done, point: shop.Point) -> dict:
    """Compares what the class returns; the clickables by their lower-case labels, as episodes have them."""
    # The last page says more afterwards.
    before, last, _ = text.partition(LAST_WORDS)
    actions = env.get_available_actions()
    labels = {label.lower(): label for label in actions["clickables"]}
    point.check(before + last, {**actions, "clickables": list(labels)}, reward, done)
    return labels


def shop_for(episode: shop.Episode) -> bool:
    # `pause` is the only wait that the class has.
    env = WebAgentSiteEnv(observation_mode="text", session=f"fixed_{episode.goal}", pause=PAUSE)
    try:
        assert episode.instruction in env.instruction_text, env.instruction_text
        labels, done = check(env, env.observation, 0.0, None, episode.start), False
        for action, point in episode.turns:
            name, argument = action.removesuffix("]").split("[", 1)
            text, reward, done, _ = env.step(action if name == "search" else f"click[{labels[argument]}]")
            # The site has no step limit, so that only a purchase ends an episode.
            labels = check(env, text, reward, True if argument == "buy now" else None, point)
        return done
    finally:
        env.browser.quit()


if __name__ == "__main__":
    episodes = shop.episodes()
    with contextlib.chdir(tempfile.mkdtemp()), contextlib.redirect_stdout(sys.stderr), shop.serve(port=PORT):
        n_bought = sum(map(shop_for, episodes))
    assert n_bought >= 12, f"{n_bought} purchases"
    what = f"{len(episodes)} episodes as recorded, {n_bought} purchases"
    shop.passed("selenium", "the original's WebAgentSiteEnv", what)
