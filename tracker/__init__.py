"""What is known, and how it is shown. Knows no mail syntax, no git, no SMTP; imports nothing from bot/."""
