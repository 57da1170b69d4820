"""What mail programs write in many languages: attributions, separators, header blocks, out-of-office subjects."""

from __future__ import annotations

WROTE = (
    *("wrote", "writes", "said", "schrieb", "a écrit", "escribió", "ha scritto", "escreveu", "schreef"),
    *(
        "skrev",
        "skrev följande",
        "napisał",
        "napisał\\(a\\)",
        "пишет",
        "писал",
        "kirjoitti",
        "napsal",
        "yazdı",
        "写道",
        "のメール",
        "님이 작성",
    ),
)
ON = ("On", "Am", "Le", "El", "Em", "Op", "Il", "At", "Den", "W dniu", "在")
OLDER_MAIL = (
    *("Original Message", "Forwarded message", "Ursprüngliche Nachricht", "Message d['’]origine"),
    *("Mensaje original", "Messaggio originale", "Mensagem original", "Oorspronkelijk bericht"),
    *("原始邮件", "邮件原件", "原始郵件", "转发的邮件", "Исходное сообщение", "Пересылаемое сообщение"),
    *("Weitergeleitete Nachricht", "Original-Nachricht", "Message original", "Message transféré", "Mensaje reenviado"),
    *(
        "Messaggio inoltrato",
        "Mensagem encaminhada",
        "元のメッセージ",
        "転送されたメッセージ",
        "원본 메시지",
        "전달된 메시지",
    ),
    *("Ursprungligt meddelande", "Oprindelig meddelelse", "Opprinnelig melding", "Alkuperäinen viesti"),
    *("Oryginalna wiadomość", "Wiadomość oryginalna", "Původní zpráva", "Orijinal Mesaj"),
)
FROM = (
    "From",
    "Von",
    "De",
    "Da",
    "Van",
    "Od",
    "От",
    "Från",
    "Fra",
    "发件人",
    "寄件者",
    "差出人",
    "보낸 사람",
    "Lähettäjä",
    "Kimden",
    "Odesílatel",
)
SENT = (
    *("Sent", "Date", "Gesendet", "Datum", "Envoyé", "Enviado(?: el)?", "Inviato", "Data", "Verzonden"),
    *("Отправлено", "Дата", "Skickat", "Sendt", "Wysłano", "Fecha", "Lähetetty", "Gönderildi", "Odesláno"),
    *("发送时间", "日期", "寄件日期", "送信日時", "보낸 날짜"),
)
TO = (
    "To",
    "An",
    "À",
    "Para",
    "A",
    "Aan",
    "Do",
    "Till",
    "Til",
    "Кому",
    "收件人",
    "收件者",
    "宛先",
    "받는 사람",
    "Vastaanottaja",
    "Kime",
    "Komu",
)
AWAY = (
    *("automatic reply", "auto(?:matic)?[- ]?(?:response|reply)", "out of (?:the )?office(?: reply)?"),
    *("vacation(?: reply)?", r"automatische antwort", r"abwesenheits\w*", "réponse automatique"),
    *(
        "respuesta automática",
        "risposta automatica",
        "resposta automática",
        "autosvar",
        "automatiskt svar",
        "automatisk svar",
    ),
    *("abwesend", "absence du bureau", "ooo", "ausente", "odpowiedź automatyczna", "automatická odpověď", "автоответ"),
    *("автоматический ответ", "自动回复", "自动答复", "自動応答", "자동 회신", "자동 응답"),
)


def any_of(words: tuple[str, ...]) -> str:
    """Return a pattern that matches any of the words."""
    return f"(?:{'|'.join(words)})"
