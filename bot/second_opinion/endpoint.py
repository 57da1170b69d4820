"""An OpenAI-compatible endpoint (llama.cpp, vLLM, Ollama …): one chat completion, with limits on time and size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import requests

from bot.errors import Unreadable
from bot.second_opinion.question import SCHEMA

_MOST_BYTES = 256 << 10  # of an answer
_MOST_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url`: up to and with /v1. `timeout`: seconds without a byte from the server."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0

    def ask(self, messages: Sequence[dict[str, str]]) -> str:
        """Return the text of the answer. Raises OSError if there is no server, Unreadable if it answers otherwise."""
        payload: Any = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": _MOST_TOKENS,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reading", "strict": True, "schema": SCHEMA},
            },
        }
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        with requests.post(
            f"{self.url.rstrip('/')}/chat/completions",
            json=payload,
            headers=headers,
            timeout=self.timeout,
            allow_redirects=False,
            stream=True,
        ) as response:
            if response.status_code != 200:
                raise OSError(f"{self.url}: HTTP {response.status_code}")
            return _content(_body(response))


def _body(response: requests.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(1 << 14):
        body += chunk
        if len(body) > _MOST_BYTES:
            raise Unreadable("the answer is too long")
    return bytes(body)


def _content(body: bytes) -> str:
    """Return the text of the first choice of a chat completion."""
    try:
        given: Any = json.loads(body)
        content = given["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise Unreadable("not a chat completion") from None
    if not isinstance(content, str):
        raise Unreadable("not a chat completion")
    return content
