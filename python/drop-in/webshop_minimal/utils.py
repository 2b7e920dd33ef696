"""Paths of the original; None is an embedded catalog."""

DEFAULT_FILE_PATH = None
