"""MCP clients of the protocols with sessions: Python's SDK over HTTP and standard input and output, and LangChain."""

import asyncio

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import shop

EPISODES = shop.episodes()
PRESETS = {
    "webshop": (["search", "click", "view_page"], ("query", "target")),
    "agentgym": (["search", "click", "view_page"], ("keywords", "item")),
    "agentbench": (["search_action", "click_action", "view_page"], ("keywords", "value")),
}


async def shop_for(session: ClientSession, episode: shop.Episode, preset: str):
    """Shops as in an episode, by the names of a preset."""
    names, arguments = PRESETS[preset]
    begun = await session.initialize()
    assert begun.instructions.endswith(episode.instruction), begun.instructions
    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == names, tools
    seen = await session.call_tool("view_page", {})
    check(seen, episode.start)
    for action, point in episode.turns:
        tool, argument = shop.tool_call(action, arguments)
        check(await session.call_tool(names[["search", "click"].index(tool)], argument), point)


def check(result, point: shop.Point):
    assert not result.isError, result
    seen = result.structuredContent
    assert result.content[0].text == seen["text"]
    point.check(seen["text"], seen["available_actions"], seen["reward"], seen["done"])


async def refusals(session: ClientSession):
    """What an agent does wrong is a result that says so; what a program does wrong is an error."""
    wrong = await session.call_tool("search", {"querry": "lamp"})
    assert wrong.isError and "has no argument `querry`" in wrong.content[0].text, wrong
    passing = await session.call_tool("click", {"target": "no such label"})
    assert not passing.isError and passing.structuredContent["reward"] == 0.0, passing
    with shop.raises(McpError, "there is no tool `reset`"):
        await session.call_tool("reset", {})


async def over_http(url: str):
    for number, episode in enumerate(EPISODES):
        preset = list(PRESETS)[number % len(PRESETS)]
        async with streamable_http_client(f"{url}?goal={episode.goal}&tools={preset}") as (read, write, *_):
            async with ClientSession(read, write) as session:
                await shop_for(session, episode, preset)
    async with streamable_http_client(f"{url}?goal=0") as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await refusals(session)
            await session.send_ping()
    with shop.raises(McpError, f"there is no goal `{shop.N_TOO_LARGE}`"):
        await begin(f"{url}?goal={shop.N_TOO_LARGE}")
    with shop.raises(McpError, "the address is wrong: `gaol`"):
        await begin(f"{url}?gaol=3")
    shop.passed("mcp", "Streamable HTTP", f"{len(EPISODES)} episodes as recorded, 3 presets of names, 5 refusals")


async def begin(url: str):
    """Initializes a session; raises the client's own error out of its groups."""
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        try:
            await session.initialize()
            return
        except McpError as error:
            refusal = error
    raise refusal


async def over_stdio():
    for episode in EPISODES[:3]:
        command = StdioServerParameters(command=shop.BIN, args=["mcp", "--goal", str(episode.goal)])
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await shop_for(session, episode, "webshop")
            await refusals(session)
    shop.passed("mcp", "standard input and output", "3 episodes as recorded, 3 refusals")


async def langchain(url: str):
    for episode in EPISODES:
        connection = {"url": f"{url}?goal={episode.goal}", "transport": "streamable_http"}
        async with MultiServerMCPClient({"shop": connection}).session("shop") as session:
            tools = {tool.name: tool for tool in await load_mcp_tools(session)}
            for action, point in episode.turns:
                name, arguments = shop.tool_call(action)
                content, artifact = await tools[name].coroutine(**arguments)
                text = content if isinstance(content, str) else content[0]["text"]
                seen = artifact["structured_content"]
                point.check(text, seen["available_actions"], seen["reward"], seen["done"])
            with shop.raises(ToolException, "has no argument `querry`"):
                await tools["search"].coroutine(querry="lamp")
    shop.passed("langchain-mcp-adapters", "MultiServerMCPClient", f"{len(EPISODES)} episodes as recorded, an error")


async def main():
    with shop.serve() as addresses:
        await over_http(addresses["mcp"])
        await langchain(addresses["mcp"])
    await over_stdio()


if __name__ == "__main__":
    asyncio.run(main())
