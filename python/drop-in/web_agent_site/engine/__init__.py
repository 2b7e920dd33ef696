"""Parsing of actions."""
