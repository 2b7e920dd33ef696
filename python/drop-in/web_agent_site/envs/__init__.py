"""The text environment, registered as `WebAgentTextEnv-v0` if gym is installed."""

from webshop.legacy import WebAgentTextEnv

try:
    from gym.envs.registration import register
except ImportError:
    pass
else:
    register(id="WebAgentTextEnv-v0", entry_point="web_agent_site.envs:WebAgentTextEnv")

__all__ = ["WebAgentTextEnv"]
