"""Parsing of actions."""

from webshop.legacy import END_BUTTON, parse_action

__all__ = ["END_BUTTON", "parse_action"]
