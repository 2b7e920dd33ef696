"""Clients of the original's site: Selenium with Chromium, and requests with BeautifulSoup.

Both do what the original's `WebAgentSiteEnv` does: they look for its ids and classes, act on what they found, and read
text, actions and reward from the page.
"""

import contextlib
import os
from urllib.parse import urljoin

import requests
from bs4 import BeautifulSoup
from selenium import webdriver
from selenium.common.exceptions import ElementNotInteractableException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

import shop

EPISODES = shop.episodes()
LAST_WORDS = "Reward Details [SEP] None"
HIDDEN = ("style", "script", "head", "title", "meta", "[document]")


def text(document: BeautifulSoup) -> str:
    """The visible text, as the original's `convert_html_to_text` reads it. The last page says more afterwards."""
    visible = (node for node in document.find_all(string=True) if node.parent.name not in HIDDEN)
    words = " [SEP] ".join(node.strip() for node in visible if node.strip())
    before, last, _ = words.partition(LAST_WORDS)
    return before + last


def reward(document: BeautifulSoup) -> float:
    found = document.find(id="reward")
    return float(found.find("pre").string) if found else 0.0


class Browser:
    """Selenium's driver, used as by `WebAgentSiteEnv`."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = os.environ["CHROMIUM"]
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options, Service(os.environ["CHROMEDRIVER"]))

    def open(self, url: str):
        self.driver.get(url)

    def page(self) -> BeautifulSoup:
        return BeautifulSoup(self.driver.page_source, "html.parser")

    def clickables(self) -> dict:
        by_class = [self.driver.find_elements(By.CLASS_NAME, name) for name in ("btn", "product-link")]
        found = {element.text.lower(): element for elements in by_class for element in elements}
        for option in self.driver.find_elements(By.CSS_SELECTOR, "input[type='radio']"):
            found[option.get_attribute("value").lower()] = option
        return found

    def search(self, words: str):
        bar = self.driver.find_element(By.ID, "search_input")
        bar.send_keys(words)
        with self.next_page():
            bar.submit()

    def click(self, element):
        # A value is chosen on the page that is shown; every other click leads to a page.
        is_option = element.get_attribute("type") == "radio"
        with contextlib.nullcontext() if is_option else self.next_page():
            try:
                element.click()
            except ElementNotInteractableException:
                self.driver.execute_script("arguments[0].click();", element)

    @contextlib.contextmanager
    def next_page(self):
        """Waits until the page is another one, where the original sleeps for `pause` seconds."""
        shown = self.driver.find_element(By.TAG_NAME, "html")
        yield
        WebDriverWait(self.driver, 30).until(staleness_of(shown))

    def close(self):
        self.driver.quit()


class Forms:
    """Sends the forms of a page, as a browser without scripts does."""

    def __init__(self):
        self.client = requests.Session()

    def open(self, url: str):
        self._show(self.client.get(url))

    def _show(self, reply: requests.Response):
        reply.raise_for_status()
        self.url, self.document = reply.url, BeautifulSoup(reply.text, "html.parser")

    def page(self) -> BeautifulSoup:
        return self.document

    def clickables(self) -> dict:
        marked = self.document.select(".btn") + self.document.select(".product-link")
        found = {element.text.strip().lower(): element for element in marked}
        found.update((option["value"].lower(), option) for option in self.document.select("input[type='radio']"))
        return found

    def search(self, words: str):
        bar = self.document.find(id="search_input")
        self._send(bar, {bar["name"]: words})

    def click(self, element):
        if element.name == "a":
            self.open(urljoin(self.url, element["href"]))
        else:
            self._send(element, {element["name"]: element["value"]} if element.get("name") else {})

    def _send(self, element, fields: dict):
        form = element.find_parent("form")
        chosen = {radio["name"]: radio["value"] for radio in form.select("input[type='radio'][checked]")}
        self._show(self.client.post(urljoin(self.url, form.get("action", "")), data={**chosen, **fields}))

    def close(self):
        self.client.close()


def shop_for(client, site: str, episode: shop.Episode):
    client.open(f"{site}fixed_{episode.goal}")
    instruction = client.page().find(id="instruction-text").h4.text
    assert episode.instruction in instruction, instruction
    check(client, episode.start, False)
    is_over = False
    for action, point in episode.turns:
        name, argument = action.removesuffix("]").split("[", 1)
        is_over = argument == "buy now"
        if name == "search":
            client.search(argument)
        else:
            client.click(client.clickables()[argument])
        check(client, point, is_over)
    return is_over


def check(client, point: shop.Point, is_over: bool):
    document = client.page()
    seen = list(client.clickables())
    actions = {"has_search_bar": document.find(id="search_input") is not None, "clickables": seen}
    # The site has no step limit, so that only a purchase ends an episode.
    point.check(text(document), actions, reward(document), True if is_over else None)


def refusals(site: str):
    for path in (f"fixed_{shop.N_TOO_LARGE}", "item_page/fixed_0/B000000000/lamp/1/%7B%7D", "done/fixed_0/x/__import__"):
        with shop.raises(requests.HTTPError, "404 Client Error"):
            requests.get(f"{site}{path}", timeout=10).raise_for_status()


def shop_all(package: str, name: str, client, site: str):
    try:
        n_bought = sum(shop_for(client, site, episode) for episode in EPISODES)
    finally:
        client.close()
    assert n_bought >= 12, f"{n_bought} purchases"
    shop.passed(package, name, f"{len(EPISODES)} episodes as recorded, {n_bought} purchases")


if __name__ == "__main__":
    with shop.serve() as addresses:
        shop_all("requests", "forms read by BeautifulSoup", Forms(), addresses["site"])
        refusals(addresses["site"])
        shop_all("selenium", "Chromium as WebAgentSiteEnv drives it", Browser(), addresses["site"])
