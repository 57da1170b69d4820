"""The cache of DKIM keys: known keys are not looked up again, and DNS is only used if enabled."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bot import config
from bot.config import KeyCache
from tracker.models import SigningKey

MAIL = (
    b"Received: x\r\nDKIM-Signature: v=1; a=rsa-sha256; d=Dev.Example;\r\n\ts=s1; h=from;\r\n b=abc\r\n"
    b"From: a@dev.example\r\n\r\nhi\r\n"
)


@pytest.fixture
def queried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def record(name: str) -> str | None:
        names.append(name)
        return {"s1._domainkey.dev.example": "v=DKIM1; p=x", "none._domainkey.dev.example": ""}.get(name)

    monkeypatch.setattr(config, "_record", record)
    return names


@pytest.mark.django_db
def test_nobody_is_asked_by_default(queried: list[str], now: datetime) -> None:
    assert KeyCache().warm([MAIL], now) == 0
    assert queried == []


@pytest.mark.django_db
def test_a_key_is_asked_for_once_and_kept(queried: list[str], now: datetime) -> None:
    keys = KeyCache(ask_dns=True)
    assert (keys.warm([MAIL, MAIL], now), keys.warm([MAIL], now)) == (1, 0)
    assert keys.key("s1._domainkey.dev.example") == "v=DKIM1; p=x"
    assert keys.signs("dev.example")
    assert KeyCache(ask_dns=True).warm([MAIL], now) == 0
    assert queried == ["s1._domainkey.dev.example"]


@pytest.mark.django_db
def test_what_dns_cannot_tell_is_asked_again_and_what_is_not_there_after_a_while(
    queried: list[str], now: datetime
) -> None:
    unknown, none = MAIL.replace(b"s=s1", b"s=s2"), MAIL.replace(b"s=s1", b"s=none")
    keys = KeyCache(ask_dns=True)
    keys.warm([unknown, none], now)
    keys.warm([unknown, none], now)
    assert queried == ["s2._domainkey.dev.example", "none._domainkey.dev.example", "s2._domainkey.dev.example"]
    assert keys.key("none._domainkey.dev.example") == ""
    assert not keys.signs("dev.example")
    SigningKey.objects.update(fetched_at=now - timedelta(days=4000))
    assert KeyCache(ask_dns=True).warm([none], now) == 1
