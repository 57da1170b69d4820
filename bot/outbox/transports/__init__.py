"""Transports: one module each, with the interface of `port.py`; `choice.py` picks the one that EMAIL_URL names.

To add one, see CONTRIBUTING.md.
"""
