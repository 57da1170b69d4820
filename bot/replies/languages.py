"""What mail programs write in the languages of their users: attributions, older mail, header blocks, absences."""

from __future__ import annotations

WROTE = (
    *("wrote", "writes", "said", "schrieb", "a écrit", "escribió", "ha scritto", "escreveu", "schreef"),
    *("skrev", "napisał", "пишет", "写道"),
)
ON = ("On", "Am", "Le", "El", "Em", "Op", "Il", "At", "Den", "W dniu", "在")
OLDER_MAIL = (
    *("Original Message", "Forwarded message", "Ursprüngliche Nachricht", "Message d['’]origine"),
    *("Mensaje original", "Messaggio originale", "Mensagem original", "Oorspronkelijk bericht"),
    *("原始邮件", "邮件原件", "Исходное сообщение"),
)
FROM = ("From", "Von", "De", "Da", "Van", "Od", "От", "Från", "Fra", "发件人", "差出人", "보낸 사람")
SENT = (
    *("Sent", "Date", "Gesendet", "Datum", "Envoyé", "Enviado(?: el)?", "Inviato", "Data", "Verzonden"),
    *("Отправлено", "Дата", "Skickat", "发送时间", "日期", "送信日時"),
)
TO = ("To", "An", "À", "Para", "A", "Aan", "Do", "Till", "Til", "Кому", "收件人", "宛先", "받는 사람")
AWAY = (
    *("automatic reply", "auto(?:matic)?[- ]?(?:response|reply)", "out of (?:the )?office(?: reply)?"),
    *("vacation(?: reply)?", r"automatische antwort", r"abwesenheits\w*", "réponse automatique"),
    *("respuesta automática", "risposta automatica", "自动回复"),
)


def any_of(words: tuple[str, ...]) -> str:
    """A pattern that matches one of the words."""
    return f"(?:{'|'.join(words)})"
