"""Python's MCP SDK 2: the protocol 2026-07-28, whose requests stand alone, and the older one."""

import asyncio

from mcp import Client, MCPError, StdioServerParameters

import shop

EPISODES = shop.episodes()


async def shop_for(client: Client, episode: shop.Episode):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["search", "click", "view_page"], names
    check(await client.call_tool("view_page", {}), episode.start)
    for action, point in episode.turns:
        check(await client.call_tool(*shop.tool_call(action)), point)
    wrong = await client.call_tool("search", {"querry": "lamp"})
    assert wrong.is_error and "has no argument `querry`" in wrong.content[0].text, wrong
    with shop.raises(MCPError, "there is no tool `reset`"):
        await client.call_tool("reset", {})


def check(result, point: shop.Point):
    assert not result.is_error, result
    seen = result.structured_content
    assert result.content[0].text == seen["text"]
    point.check(seen["text"], seen["available_actions"], seen["reward"], seen["done"])


async def main():
    with shop.serve() as addresses:
        for mode in ("auto", "legacy"):
            for number, episode in enumerate(EPISODES):
                # A name is for one task, and free again only when its session has ended.
                url = f"{addresses['mcp']}?session={mode}-{number}&goal={episode.goal}"
                async with Client(url, mode=mode) as client:
                    await shop_for(client, episode)
                    protocol = client.protocol_version
            shop.passed("mcp", f"Client over HTTP, protocol {protocol}", f"{len(EPISODES)} episodes as recorded")
        async with Client(f"{addresses['mcp']}?goal=0") as client:
            with shop.raises(MCPError, "session=NAME"):
                await client.call_tool("view_page", {})
    for mode in ("auto", "legacy"):
        for episode in EPISODES[:3]:
            command = StdioServerParameters(command=shop.BIN, args=["mcp", "--goal", str(episode.goal)])
            async with Client(command, mode=mode) as client:
                await shop_for(client, episode)
                protocol = client.protocol_version
        shop.passed("mcp", f"Client over standard input and output, protocol {protocol}", "3 episodes as recorded")


if __name__ == "__main__":
    asyncio.run(main())
