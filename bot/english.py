"""English that a reader does not stumble over. Pure."""


def counted(number: int, thing: str) -> str:
    """ "1 mail", "2 mails"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def article(number: str) -> str:
    """ "a" or "an" before a number as it is spoken: an 8.8 %, an 11.0 %, an 18 %, an 80 %; a 1.1 %."""
    whole = number.partition(".")[0]
    return "an" if whole.startswith("8") or whole in ("11", "18") else "a"
