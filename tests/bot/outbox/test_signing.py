"""Signatures are added when mail is sent, and verify with the public key."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import dkim
import patatt
import pytest
from django.core.exceptions import ImproperlyConfigured
from nacl.signing import SigningKey

from bot import config
from bot.notifications.report import compose_due
from bot.outbox.transports import DkimKey, PatattKey, Signing, Unsigned
from tests.mail_server import Moody, mail_server
from tests.needs import need
from tests.outbox import send
from tests.world import World
from tracker.models import OutgoingMail

SEED = base64.b64encode(bytes(range(32)))
PUBLIC = base64.b64encode(bytes(SigningKey(bytes(range(32))).verify_key))


def sent(world: World, signing: Signing) -> bytes:
    """What a receiver gets of a real report."""
    world.ingest(world.result("b" * 40, "mm: größer ± 3"))
    compose_due(world.settings, world.now, approve_first=False)
    mood = Moody()
    with mail_server(mood) as server:
        assert sum(send(server, signing=signing).values()) == 1
    return mood.taken[0]


def verified(raw: bytes, record: bytes) -> bool:
    return bool(
        dkim.verify(raw, dnsfunc=lambda name, timeout=5: record if name.startswith(b"s1._domainkey.") else None)
    )


def test_ed25519(world: World) -> None:
    raw = sent(world, Signing(DkimKey("bot.example.org", "s1", SEED)))
    record = b"v=DKIM1; k=ed25519; p=" + PUBLIC
    assert verified(raw, record)
    for old, new in ((b"regression", b"improvement"), (b"dana@dev.example", b"evil@dev.example")):
        assert not verified(raw.replace(old, new, 1), record)
    listed = raw.replace(b"DKIM-Signature", b"List-Id: <l.example>\r\nX-Been-There: yes\r\nDKIM-Signature", 1)
    assert verified(listed, record)  # what a list adds does no harm
    assert raw.endswith(bytes(OutgoingMail.objects.get().raw))


def test_rsa(world: World, tmp_path: Path) -> None:
    need("openssl")
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genrsa", "-traditional", "-out", key, "2048"], check=True, capture_output=True)
    public_key = subprocess.run(
        ["openssl", "rsa", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True
    )
    raw = sent(world, Signing(DkimKey("bot.example.org", "s1", key.read_bytes())))
    assert b"a=rsa-sha256" in raw
    assert verified(raw, b"v=DKIM1; k=rsa; p=" + base64.b64encode(public_key.stdout))


def test_patatt_inside_of_dkim(world: World, tmp_path: Path) -> None:
    signing = Signing(DkimKey("bot.example.org", "s1", SEED), PatattKey("perfbot@bot.example.org", "", SEED.decode()))
    raw = sent(world, signing)
    assert verified(raw, b"v=DKIM1; k=ed25519; p=" + PUBLIC)
    keyring = tmp_path / "ed25519" / "bot.example.org" / "perfbot" / "default"
    keyring.parent.mkdir(parents=True)
    keyring.write_bytes(PUBLIC)
    ((result, identity, *_),) = patatt.validate_message(raw, [str(tmp_path)])
    assert (result, identity) == (patatt.RES_VALID, "perfbot@bot.example.org")


def test_a_key_that_is_none_is_said_at_the_start(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    settings.PERFWORK_DKIM_KEY = str(tmp_path / "key")
    with pytest.raises(ImproperlyConfigured, match="PERFWORK_DKIM_KEY or PERFWORK_PATATT_KEY: could not be signed"):
        config.send_config()
    settings.PERFWORK_DKIM_KEY = str(tmp_path / "none")
    with pytest.raises(ImproperlyConfigured, match=r"PERFWORK_DKIM_KEY: .*none can't be read: No such file"):
        config.send_config()
    settings.PERFWORK_DKIM_KEY = ""
    (tmp_path / "key").write_bytes(SEED)
    settings.PERFWORK_PATATT_KEY = str(tmp_path / "key")
    assert config.send_config().signing


def test_a_mail_that_can_not_be_signed_does_not_leave(world: World) -> None:
    with pytest.raises(Unsigned):
        Signing(DkimKey("bot.example.org", "s1", b"no key")).sign(b"From: a@b\r\n\r\n")
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=False)
    mood = Moody()
    with mail_server(mood) as server:
        send(server, signing=Signing(DkimKey("bot.example.org", "s1", b"no key")))
    assert not mood.taken
    assert "could not be signed" in OutgoingMail.objects.get(state="failed").reason
