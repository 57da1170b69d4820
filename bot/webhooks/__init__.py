"""Webhooks: tell other programs of new events, signed, each from a queue of its own.

`signature.py` signs, `target.py` decides where may be sent to and sends, `deliveries.py` queues and retries.
"""
