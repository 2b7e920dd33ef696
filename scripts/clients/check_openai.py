"""OpenAI's Python client, with a small random checkpoint: models, chats, texts, streams, log-probabilities, errors."""

import os

import openai

import shop

MODEL = "webshop"
QUESTION = [{"role": "user", "content": "i need a lamp, and price lower than 50.00 dollars"}]
GREEDY = {"model": MODEL, "messages": QUESTION, "max_tokens": 24, "temperature": 0}


def models(client: openai.OpenAI):
    listed = [model.id for model in client.models.list()]
    assert listed == [MODEL], listed
    assert client.models.retrieve(MODEL).id == MODEL


def chats(client: openai.OpenAI):
    whole = client.chat.completions.create(**GREEDY, logprobs=True, top_logprobs=3)
    choice = whole.choices[0]
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert choice.finish_reason in ("stop", "length") and choice.message.role == "assistant"
    assert len(choice.logprobs.content) == whole.usage.completion_tokens
    for token in choice.logprobs.content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert token.top_logprobs[0].token == token.token, "a greedy token is the most probable one"
    pieces, usage = [], None
    events = client.chat.completions.create(**GREEDY, stream=True, stream_options={"include_usage": True})
    for event in events:
        pieces += [choice.delta.content or "" for choice in event.choices]
        usage = event.usage or usage
    assert "".join(pieces) == choice.message.content and usage == whole.usage
    # A seed decides about a sample.
    sampled = {**GREEDY, "temperature": 1, "seed": 7}
    texts = [client.chat.completions.create(**sampled).choices[0].message.content for _ in range(2)]
    assert texts[0] == texts[1], texts


def texts(client: openai.OpenAI):
    whole = client.completions.create(model=MODEL, prompt="a lamp", max_tokens=12, seed=3, logprobs=2)
    choice = whole.choices[0]
    assert len(choice.logprobs.tokens) == whole.usage.completion_tokens
    events = client.completions.create(model=MODEL, prompt="a lamp", max_tokens=12, seed=3, stream=True)
    assert "".join(event.choices[0].text for event in events if event.choices) == choice.text
    # The same tokens have the same log-probabilities when they are scored as a prompt.
    scored = client.completions.create(model=MODEL, prompt="a lamp", max_tokens=0, echo=True, logprobs=0)
    assert scored.choices[0].text == "a lamp" and scored.choices[0].logprobs.token_logprobs[0] is None
    echoed = client.completions.create(model=MODEL, prompt="a lamp", max_tokens=12, seed=3, logprobs=2, echo=True)
    assert echoed.choices[0].text == "a lamp" + choice.text
    assert echoed.choices[0].logprobs.token_logprobs[-len(choice.logprobs.tokens) :] == choice.logprobs.token_logprobs
    assert echoed.choices[0].logprobs.token_logprobs[1 : -len(choice.logprobs.tokens)] == (
        scored.choices[0].logprobs.token_logprobs[1:]
    )


def errors(client: openai.OpenAI):
    chat, complete = client.chat.completions.create, client.completions.create
    refused(openai.NotFoundError, "model_not_found", "model", lambda: chat(**{**GREEDY, "model": "another"}))
    refused(openai.NotFoundError, "model_not_found", "model", lambda: client.models.retrieve("another"))
    for field, value in {"n": 2, "temperature": -1, "top_logprobs": 21, "stop": ["a"] * 5, "messages": []}.items():
        wrong = {**GREEDY, "logprobs": True, field: value}
        refused(openai.BadRequestError, None, field, lambda: chat(**wrong))
    refused(openai.BadRequestError, None, "prompt", lambda: complete(model=MODEL, prompt={"text": "a lamp"}))
    long = refused(
        openai.BadRequestError, "context_length_exceeded", None, lambda: complete(model=MODEL, prompt="a lamp " * 20000)
    )
    # Programs that shorten their prompts look for these words.
    assert long.body["message"].startswith("This model's maximum context length is"), long


def refused(kind, code, param, request):
    """The request must fail with the client's exception for a status, and name code and field at fault."""
    try:
        request()
    except kind as error:
        assert code in (None, error.code), f"{error.code}: {error}"
        assert param in (None, error.param), f"{error.param}: {error}"
        return error
    raise AssertionError(f"{kind} was not raised")


def token():
    """A server with a token refuses others."""
    os.environ["WEBSHOP_TOKEN"] = "secret"
    with shop.serve("--model", os.environ["WEBSHOP_MODEL"], "--token-env", "WEBSHOP_TOKEN") as addresses:
        with shop.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=addresses["openai"], api_key="guessed", max_retries=0).models.list()
        models(openai.OpenAI(base_url=addresses["openai"], api_key="secret"))


if __name__ == "__main__":
    with shop.serve("--model", os.environ["WEBSHOP_MODEL"]) as addresses:
        client = openai.OpenAI(base_url=addresses["openai"], api_key="none", max_retries=0)
        models(client)
        chats(client)
        texts(client)
        errors(client)
    token()
    shop.passed("openai", "OpenAI", "models, chats, texts, streams, log-probabilities, 9 errors, token")
