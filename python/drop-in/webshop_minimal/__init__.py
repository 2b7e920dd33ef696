"""The names that RAGEN imports."""

from webshop.legacy import WebAgentTextEnv

__all__ = ["WebAgentTextEnv", "init_basedir"]


def init_basedir(base_dir=None):
    """Nothing: no folder of data is needed."""
