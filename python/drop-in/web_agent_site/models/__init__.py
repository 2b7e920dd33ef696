"""The original's two policies without a model."""

import random


class HumanPolicy:
    """Asks at the terminal."""

    def forward(self, observation, available_actions):
        return input("> ")


class RandomPolicy:
    """Searches for shoes, then clicks at random."""

    def forward(self, observation, available_actions):
        if available_actions["has_search_bar"]:
            return "search[shoes]"
        return f"click[{random.choice(available_actions['clickables'])}]"
