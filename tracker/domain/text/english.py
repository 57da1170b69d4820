"""Helpers for English text: plurals and articles. Pure."""


def counted(number: int, noun: str) -> str:
    """ "1 mail", "2 mails"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def article(follows: str) -> str:
    """ "a" or "an" before a word or a number, as spoken: an improvement, an 8.8 %, an 11.0 %, an 18 %; a 1.1 %."""
    head = follows.partition(".")[0]
    return "an" if head[:1] in tuple("8aeiou") or head in ("11", "18") else "a"
