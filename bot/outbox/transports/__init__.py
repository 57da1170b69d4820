"""Transports: one module each, with the interface of `port.py`; `choice.py` picks the one that EMAIL_URL names.

To add one: a class with `send` and `close` here, a line in `choice.py`, a row in docs/outbox.md, and its outcomes
in tests/bot/outbox/test_transports.py.
"""
