"""The tracker: data model, web pages and API. Knows nothing of mail syntax, git or SMTP; imports nothing from bot/."""

__version__ = "2.0.0rc1"
