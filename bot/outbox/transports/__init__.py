"""Ways out: one file a way, all with the port of `port.py`; `choice.py` takes the one that EMAIL_URL names.

To add one: a class with `send` and `close` here, a line in `choice.py`, a row in docs/outbox.md, and its ends in
tests/bot/test_transports.py.
"""
