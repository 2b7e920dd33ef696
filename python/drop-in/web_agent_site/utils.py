"""Paths of the original; None is an embedded catalog."""

DEBUG_PROD_SIZE = None
DEFAULT_FILE_PATH = None
