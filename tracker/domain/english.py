"""Helpers for English text: plurals and articles. Pure."""


def counted(number: int, thing: str) -> str:
    """ "1 mail", "2 mails"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def article(follows: str) -> str:
    """ "a" or "an" before a word or a number, as spoken: an improvement, an 8.8 %, an 11.0 %, an 18 %; a 1.1 %."""
    whole = follows.partition(".")[0]
    return "an" if whole[:1] in tuple("8aeiou") or whole in ("11", "18") else "a"
