"""MCP's conformance suite, of npm, which needs Node 22: the scenarios of what `/mcp` offers.

The others test tools of a fixture server, and logging, completion, sampling, elicitation, resources and prompts, of
which a shop has none.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import shop

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
PACKAGES = Path(os.environ["WEBSHOP_NPM"], "node_modules")


def main():
    command = [PACKAGES / "node/bin/node", PACKAGES / ".bin/conformance", "server"]
    with shop.serve() as addresses:
        for scenario in SCENARIOS:
            run = [*command, "--url", f"{addresses['mcp']}?goal=3", "--scenario", scenario]
            subprocess.run(run, check=True, stdout=sys.stderr, timeout=120)
    version = json.loads((PACKAGES / "@modelcontextprotocol/conformance/package.json").read_text())["version"]
    print(f"@modelcontextprotocol/conformance {version}, server: {', '.join(SCENARIOS)}", flush=True)


if __name__ == "__main__":
    main()
