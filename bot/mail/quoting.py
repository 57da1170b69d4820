"""What the writer of a reply wrote: the text without quotes, attributions and signature.

Mail programs quote in many ways and languages: by marks, below an attribution, below a separator, below a block of
headers as Outlook writes it. The words that they use stand first, with the subjects of out-of-office mail. Where an
older mail follows without marks, nothing below is the writer's: a command in it is somebody else's.

*Unquoted lines* include the signature; each can be had with the quoted line right above it, which a short answer
needs. *Own text* ends above the signature, and above the footers of phones, companies and lists.
"""

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile
from typing import NamedTuple

# --- Words of mail programs ---

# Each a pattern of one group, to stand in others.
WROTE = (
    "(?:wrote|writes|said|schrieb|(?:a )?écrit|escribió|(?:ha )?scritto|escreveu|schreef|skrev|skrev följande"
    r"|napisał|napisał\(a\)|пишет|писал|kirjoitti|napsal|yazdı|写道|のメール|님이 작성|napísal(?:a)?|írta"
    "|(?:ha )?escrit|(?:a )?scris|έγραψε|đã viết|пише|написав(?:ла)?|rakstīja|rašė|kirjutas|napisao|napisala|je napisal"
    r"|написа|כתב(?:ה)?|نوشت|كتب|寫道|提到|さんは書きました|さんが書きました"
    r"|(?:이|가|이\(가\)|님이) 쓴 글|menulis|написал(?:а)?)"
)
ON = "(?:On|Am|Le|El|Em|Op|Il|At|Den|W dniu|在)"
OLDER_MAIL = (
    "(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Message d['’]origine|Mensaje original"
    "|Messaggio originale|Mensagem original|Oorspronkelijk bericht|原始邮件|邮件原件|原始郵件|转发的邮件"
    "|Исходное сообщение|Пересылаемое сообщение|Weitergeleitete Nachricht|Original-Nachricht|Message original"
    "|Message transféré|Mensaje reenviado|Messaggio inoltrato|Mensagem encaminhada|元のメッセージ"
    "|転送されたメッセージ|원본 메시지|전달된 메시지|Ursprungligt meddelande|Oprindelig meddelelse"
    "|Opprinnelig melding|Alkuperäinen viesti|Oryginalna wiadomość|Wiadomość oryginalna|Původní zpráva|Orijinal Mesaj)"
)
FROM = "(?:From|Von|De|Da|Van|Od|От|Från|Fra|发件人|寄件者|差出人|보낸 사람|Lähettäjä|Kimden|Odesílatel)"
SENT = (
    "(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado(?: el)?|Inviato|Data|Verzonden|Отправлено|Дата|Skickat|Sendt"
    "|Wysłano|Fecha|Lähetetty|Gönderildi|Odesláno|发送时间|日期|寄件日期|送信日時|보낸 날짜)"
)
TO = "(?:To|An|À|Para|A|Aan|Do|Till|Til|Кому|收件人|收件者|宛先|받는 사람|Vastaanottaja|Kime|Komu)"
SUBJECT = (
    "(?:Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp|Ämne|Emne|Aihe|Temat|Předmět|Тема|Konu|主题|主題|主旨"
    "|标题|件名|제목)"
)
# Before the subject of an answer or of a forwarded mail; "Re[2]:" and "Re (3):" count answers.
ANSWERED = (
    "(?:re|aw|sv|vs|antw(?:ort)?|odp|r(?:é|e)p?|r(?:é|e)f|res|rif|ynt|ilt|atb|vá|r|svar|odg|tl|trả lời|رد|إعادة"
    "|תגובה|bls|fwd?|wg|enc|doorst|vl|απ|ΑΠ|σχετ|ΣΧΕΤ|ответ|Ответ|отв|回复|回覆|答复|答覆|返信|转发|轉寄|转寄|답장"
    "|회신|השב|vastaus|válasz|odpověď|odpoveď|răspuns|cevap|reply|response)"
)
AWAY = (
    "(?:automatic reply|auto(?:matic)?[- ]?(?:response|reply)|out of (?:the )?office(?: reply)?"
    r"|vacation(?: reply)?|automatische antwort|abwesenheits\w*|réponse automatique|respuesta automática"
    "|risposta automatica|resposta automática|autosvar|automatiskt svar|automatisk svar|abwesend"
    "|absence du bureau|ooo|ausente|odpowiedź automatyczna|automatická odpověď|автоответ|автоматический ответ"
    "|自动回复|自动答复|自動応答|자동 회신|자동 응답)"
)

# A gateway or a list puts a tag before it: "[EXT] Re:", "***SPAM*** Re:"
_TAGS = r"(?:(?:\[(?![^\]]*\b(?:PATCH|RFC|PULL)\b)[^\[\]]{1,40}\]|\*{2,5}\w{1,12}\*{2,5})\s*){0,3}"
ANSWER = rf"\s*{_TAGS}{ANSWERED}\.?(?:\s?[\[(^]\d{{1,3}}[\])]?)?\s*(?::|：)\s*"


# --- Own text ---

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\u180e]")
# A table row also ends with a bar, and is not a quote.
_QUOTE = re.compile(r"\s{0,3}(?:>|\|(?=\s)(?!.*\|\s*\Z))|[A-Z][A-Za-z]{0,3}>")
# "On Mon, …, Lee Park wrote:" in one to three lines, or an address or a time of day; the colon ends it.
_ATTRIBUTION_END = re.compile(rf"(?:{WROTE}|<[^<>\s]{{1,200}}@[^<>\s]{{1,200}}>|\d{{1,2}}:\d\d).{{0,120}}[:：]\s*\Z")
_SAYS_WROTE = re.compile(rf"{WROTE}\s?[:：]\s*\Z")
_ATTRIBUTION_START = re.compile(
    rf"{ON}\s.{{4,}}|\S.{{0,120}}<[^\s<>]+@[^\s<>]+>|\d{{4}}[-/年]|\d\d?[./]|\d\d? \w{{3,12}}\.? \d{{4}},? "
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? "
)
_ON_A_DAY = re.compile(rf"(?:{ON}|Quoting)\s(?=.{{0,80}}\d)")
# As Thunderbird writes it in Korean, and Tutanota: "1 Sept 2026, 06:00 by lee@dev.example:"
_KOREAN = re.compile(r"(?:19|20)\d\d\S{2,8}\s.{4,120}(?:이|가|이\(가\)|님이) 쓴 글\s?[:：]\Z")
_BY_MAILBOX = re.compile(r"\d\d? \w{3,12}\.? \d{4},? \d{1,2}:\d\d by [^\s<>@]{1,80}@[\w.-]{1,80}\s?[:：]\Z")
_TRAILER = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*-by:|(?:Fixes|Closes|Link|Cc):")
_ELLIPSIS = re.compile(r"\s*(?:\[?(?:\.{2,4}|…|snip(?:ped)?)\]?|<snip>)\s*\Z", re.I)
_OLDER_MAIL = re.compile(
    rf"[\s*]{{0,4}}(?:-{{2,}}+\s?{OLDER_MAIL}(?: from .{{0,200}}?)?\s?-{{2,}}|Begin forwarded message:)"
    r"|_{32,}\Z",
    re.I,
)
# Novell's GroupWise puts such a line above an older mail that it does not mark.
_MARKS_NOTHING = re.compile(
    rf">>>\s?(?=[^>]*(?:@|\d))[^>\s].{{0,300}}(?:>>>|{WROTE}\s?[:：])\s*\Z",
)
# The header block above the answered mail, as Outlook writes it.
_FIRST_OF_BLOCK = re.compile(rf"[\s*]{{0,4}}{FROM}\s?\*?[:：]")
_HEAD_LINE = re.compile(r"[\s*]{0,4}[^\s:：][^:：]{0,30}[:：]")
_GIT_HEAD = re.compile(r"From [0-9a-f]{40} ")
_IN_BLOCK = re.compile(rf"[\s*]{{0,4}}(?:(?P<sent>{SENT})|(?P<to>{TO})|(?P<subject>{SUBJECT}))\s?\*?[:：]")
_RULE = re.compile(r"[-_=*\u2014\u2500]{3,}\s*\Z")
_PATCH = re.compile(r"diff --git |--- \S|@@ -|Index: \S")
_MAILBOX = re.compile(r"<[^<>\s]{1,200}@[^<>\s]{1,200}>")
_MOMENT = re.compile(r"\d{4}.{0,40}\d{1,2}:\d\d|\d{1,2}:\d\d.{0,40}\d{4}")
# Footers of phones and companies.
FOOTER = re.compile(
    r"(?:sent from my |sent from (?:outlook|mail) for |get outlook for |von meinem \S+ gesendet|envoyé de mon "
    r"|enviado desde mi |发自我的"
    r"|this (?:e-?mail|message|communication)\b.{0,120}\b(?:confidential|privileged|intended only)"
    r"|confidentiality notice|disclaimer:|important notice: )",
    re.I,
)
_LIST_FOOTER = re.compile(r"_{40,}\s*\Z")
_SIGNATURE = re.compile(r"--\s?\Z|-----BEGIN PGP SIGNATURE-----")
_PGP_HEAD = "-----BEGIN PGP SIGNED MESSAGE-----"
_ARMOR_HEADER = re.compile(r"(?:Hash|Charset|Comment|Version|MessageID|NotDashEscaped): ")
_BEGINNINGS = frozenset("-_=*Bb \t\u2014\u2500")  # of a separator above an older mail; its header lines have a colon
MAX_LINE = 20_000
_JUDGED = 300_000  # characters of a text: nobody's command stands below that
_TELLING = 300  # characters at each end of a line that are looked at for doubt
# What no reader sees: format characters, fillers of Hangul, variation selectors, tags (Default_Ignorable_Code_Point).
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANKS = re.compile(r"(?<=\S)\s+|(?<=\s{4})\s+")


# What may begin an older mail, whatever its language: marks that few programs use, a rule with words, two lines as
# of a header, a line with an address and a moment.
_ODD_MARK = re.compile(
    r"\s{0,12}(?:[＞»›]|[%:]\s|\[(?!(?:\d{1,2}|PATCH|RFC|RESEND|LKP|REGRESSION)\])\w{1,20}\]\s|\[quote\b"
    r"|<?[\w.]{1,20}[>＞]\s)|\s{4,40}>"
)
# Above somebody's words in a chat, a tracker or a web page: "Lee Park:", "Lee Park  [06:00]", "Lee replied 3 days ago"
_NAME = r"\s{0,4}\*{0,2}(?!(?:Hi|Hello|Dear|Hey)\b)[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30}){0,3}\*{0,2}"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_SPEAKS = re.compile(
    rf"{_NAME}\s{{1,8}}[\[(]?(?:today |yesterday |at ){{0,2}}{_TIME}[\])]?\s*\Z"
    rf"|(?=\S+ \S){_NAME}\s?[:：]\s*\Z"
    rf"|\s{{0,4}}[\[(]{_TIME}[\])]\s{{1,4}}{_NAME}\s?[:：]?\s*\Z"
    rf"|(?!.*\bI\b){_NAME} (?:commented|replied|posted|wrote|said)\b.{{0,40}}\b(?:ago|yesterday|today)\b.{{0,20}}\Z"
    rf"|{_NAME} has posted comments on this change\.\s*\Z|{_NAME}\s.{{0,40}}\d\d.{{0,20}}UTC \| #\d{{1,3}}\s*\Z",
    re.A,
)
# Attributions without "wrote", an address or a day: "Thus spake Lee:", "@lee commented on this:", "[Lee wrote]"
_SAYS = re.compile(
    rf"(?:(?=\s{{0,4}}\S+ [A-Z]){_NAME}|\s{{0,4}}@[\w-]{{1,40}}) (?:says|answered|replied|commented|posted)"
    rf"(?: on [\w ]{{1,40}})?\s?[:：]\s*\Z"
    rf"|\s{{0,4}}(?:Thus|Also) (?:spake|spoke|sprach){_NAME}\s?[:：]\s*\Z"
    rf"|{_NAME}['’]s (?:answer|reply) was\s?[:：]\s*\Z"
    rf"|\s{{0,4}}\[[^\]]{{1,60}}{WROTE}.{{0,20}}\]\s*\Z",
    re.A,
)
# "Lee Park ---09/01/2026 06:00:00 AM---Hello", as HCL Notes writes it
_NOTES = re.compile(r"-{3}\d{1,4}[./-]\d{1,2}[./-]\d{1,4} \d{1,2}:\d\d")
_ONLY_NAME = re.compile(rf"{_NAME}\s*\Z")
_END_OF_ATTRIBUTION = re.compile(rf"\s{{0,4}}(?:<[^<>\s]{{1,200}}>\s?)?{WROTE}.{{0,20}}[:：]\s*\Z")
_LINK = re.compile(r"https?://\S{1,500}")
_KERNELS_RULE = re.compile(r"-+\[ (?:cut here|end trace [\da-f]+) \]-+\Z")  # around a warning in a log
_BARE_RULE = re.compile(r"\s*[-_=*#\u2010-\u2015\u2500+| ]{5,}\Z")
_LONGEST_TABLE = 40  # lines
_RULE_ENDS = re.compile(r"[-_=*#\u2010-\u2015\u2500]{2}")
# Marks of vowels, as in Thai and Hindi, are not letters to the re module.
_LABEL = re.compile(r"[\s*<\u3000]{0,12}[^\W\d_][^:：,;()/<>@]{0,31}[:：]\*?[\s\u3000]*\S")
_MAILBOX_OR_BARE = re.compile(r"[^\s<>,;:()@]@[\w-]{1,100}\.\w")
_DAY = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{4}年|\b\d{1,2}\.?\s\w{3,12}\.?,?\s\d{4}|\w{3,12}\.?\s\d{1,2},?\s\d{4}"
)
_DATED = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\d[./-]\d{1,2}[./-]\d")  # what both have, and most lines don't
_CLOCK = re.compile(r"\b\d{1,2}[:.]\d\d\b")
_YEAR_AND_DAY = re.compile(r"\b\d{1,2}\b.{0,40}(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\d)(?:19|20)\d\d\b.{0,40}\b\d{1,2}\b")
_QUOTING = re.compile(r"\s{0,8}quoting\b.*\d", re.I)  # Alot's and others' attribution, with or without a colon
# What Apple's programs write above a forwarded mail, with no rule around it.
_FORWARDED = re.compile(
    r"forward|weitergeleitet|transf[ée]r|r[ée]exp[ée]di|reenviad|inoltrat|encaminhad|doorgestuurd|vidarebefordra"
    r"|videresend|välitet|przekazan|přeposlan|preposlan|переадрес|пересла|пересила|iletilen|továbbít|redirecționat"
    r"|προωθ|转发|轉寄|転送|전달",
    re.I,
)
_NAMES_OTHERS = re.compile(rf"{WROTE}.{{0,20}}[:：]\s*\Z|\bquoting\b|\b(?:original|forwarded) (?:message|mail)\b", re.I)
_ONLY_MAILBOX = re.compile(r"[^<>@:]{0,80}<[^<>\s]{1,200}@[^<>\s]{1,200}>")
_SHORT = 60  # letters of a line that says no more than that a mail was forwarded
_WRAPPED_AT = 66  # columns; the narrowest at which a mail program is known to wrap (Gmail: 78)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.I)
_WROTE_AT_END = re.compile(rf"{WROTE}.{{0,60}}[:：]?\s*\Z")


class TextLine(NamedTuple):
    """An unquoted line, and the quoted line right above it, or ""."""

    text: str
    below: str = ""


def clean(text: str) -> str:
    """Return the text without invisible characters, and with no-break spaces as spaces."""
    return text if text.isascii() else _INVISIBLE.sub("", text).replace("\u00a0", " ")


def unquoted_lines(text: str) -> list[str]:
    """Return the unquoted lines, including the signature; overlong ones are cut."""
    return [line.text for line in lines_in_context(text)]


def lines_in_context(text: str) -> list[TextLine]:
    """Return the unquoted lines, each with the quoted line that it answers, which a short answer needs."""
    lines = _without_armor([line[:MAX_LINE] for line in clean(text).split("\n")])
    keep: list[TextLine] = []
    in_quote, quoted, resume, last_patch = False, "", _head_at_top(lines), _last_patch(lines)
    for number, line in enumerate(lines):
        if number < resume:
            continue
        if _starts_older_mail(lines, number, last_patch):
            if _is_above_unmarked(lines, number):
                break
            # The line at which an older mail with quote marks begins below its header block; 0 if it has none
            end = number + 1
            while end < min(number + 12, len(lines)) and (not lines[end].strip() or _HEAD_LINE.match(lines[end])):
                end += 1
            resume = end if end < len(lines) and _QUOTE.match(lines[end]) else 0
            if not resume:
                break
            continue
        if mark := _QUOTE.match(line):
            if not in_quote and (attribution := _attribution(keep)):  # once per quote
                del keep[-attribution:]
            in_quote = True
            quoted = line[mark.end() :].lstrip("> ").strip() or quoted
        else:
            in_quote = in_quote and not line.strip()
            keep.append(TextLine(line.rstrip(), quoted))
            quoted = "" if line.strip() else quoted
            if unmarked := _attribution_without_marks(keep, lines, number):
                del keep[-unmarked:]
                break
    return keep


def _without_armor(lines: list[str]) -> list[str]:
    """Return lines without the armor headers and dash escapes of a clear-signed text (RFC 4880 section 7)."""
    if _PGP_HEAD not in lines:
        return lines
    start = lines.index(_PGP_HEAD)
    signed = [*dropwhile(_ARMOR_HEADER.match, lines[start + 1 :])]
    return [*lines[:start], *(line.removeprefix("- ") for line in signed)]


def own_text(text: str) -> str:
    """Return the writer's own text: unquoted, above the signature and above the footer of a list."""
    return own_of(unquoted_lines(text))


def own_of(unquoted: Sequence[str]) -> str:
    """Return the own text of lines that are known to be unquoted."""
    lines = list(unquoted)
    in_patch = False
    for number, line in enumerate(lines):
        in_patch = in_patch or line.startswith("@@ ")
        ends = bool(_LIST_FOOTER.match(line) or FOOTER.match(line.strip()[:400]))
        if not ends and _SIGNATURE.match(line):
            # Git's version number follows the "-- " that ends a patch as git writes it.
            is_version = number + 1 < len(lines) and re.match(r"\d+\.\d+", lines[number + 1].strip())
            ends = not (is_version and in_patch)
        if ends:
            lines = lines[:number]
            break
    return "\n".join(lines).strip("\n")


def without_doubt(text: str) -> str:
    """Return a text down to the first line at which an older mail may begin, in whatever language and form.

    What this leaves out may be the writer's all the same: it is for what must not be somebody else's, such as a
    command. Quotes with marks and the attributions above them raise no doubt; but where a program wrapped a long
    quoted line, its rest stands below without a mark, and is left out.
    """
    has_rest = len(text) > _JUDGED
    uncut = clean(text[:_JUDGED]).split("\n")
    if text.lstrip("\n").startswith(_PGP_HEAD):
        uncut, has_rest = _without_armor(uncut), True
    whole, lines = [line[:MAX_LINE] for line in uncut], [_as_seen(line) for line in uncut]
    rest_of_quote = False
    last_patch = _last_patch(lines)
    for number, line in enumerate(lines):
        above = lines[number - 1] if number else ""
        is_quoted = _QUOTE.match(line) and not _is_above_unmarked(lines, number)
        if is_quoted and _is_quoted_attribution(lines, number):
            return "\n".join(whole[:number])
        if not line.strip() or is_quoted:
            rest_of_quote = False
            continue
        wrapped = _QUOTE.match(above) and len(above) + 1 + len(line.split(maxsplit=1)[0]) > _WRAPPED_AT
        if rest_of_quote := rest_of_quote or bool(wrapped):
            whole[number], has_rest = "", True
        elif not _ELLIPSIS.match(line) and _older_mail_may_begin(lines, number, last_patch):
            return "\n".join(whole[:number])
    return "\n".join(whole) if has_rest else text


def _as_seen(line: str) -> str:
    """Return a line as a reader sees it, however many blanks, which no signature need cover, and invisible letters are
    in it; of a long one both ends.
    """
    seen = _BLANKS.sub(" ", line if line.isascii() else _IGNORABLE.sub("", line))
    return seen if len(seen) <= 2 * _TELLING else f"{seen[:_TELLING]} {seen[-_TELLING:]}"


def _older_mail_may_begin(lines: Sequence[str], number: int, last_patch: int) -> bool:
    line = lines[number]
    if _starts_older_mail(lines, number, last_patch) or _ODD_MARK.match(line) or _is_doubtful_rule(lines, number):
        return True
    if _TRAILER.match(line):
        return False
    below = lines[number + 1] if number + 1 < len(lines) else ""
    if (
        _SPEAKS.match(line)
        or _SAYS.match(line)
        or _NOTES.search(line)
        or (len(below) < _SHORT and _ONLY_NAME.match(line) and _has_moment(below))
    ):
        return True
    if _END_OF_ATTRIBUTION.match(below) and _is_above_a_quote(lines, number):
        return False  # an attribution above a marked quote, wrapped as Gmail does it
    following = _next_line(lines, number + 1)
    ends_in_colon = line.rstrip().endswith((":", "："))
    if following < len(lines) and _QUOTE.match(lines[following]):
        return following > number + 1 and ends_in_colon and _attributes_what_follows(lines, number)
    if ends_in_colon:  # an attribution, of up to four lines
        above = " ".join(_paragraph_above(lines, number))[-_TELLING:]
        tells = _has_mailbox(above) or bool(_CLOCK.search(above) or _YEAR_AND_DAY.search(line)) or _has_moment(above)
        if tells or _NAMES_OTHERS.search(line) or (len(line) < _SHORT and _FORWARDED.search(line)):
            return True
    if (_FIRST_OF_BLOCK.match(line) and last_patch < number) or _ONLY_MAILBOX.fullmatch(line.strip()):
        return True
    if _QUOTING.match(line):
        return True
    # Two lines as "word: value", one of them with an address or a moment; or an address with a moment near
    has_mailbox = _has_mailbox(line)
    is_block = bool(_LABEL.match(line)) and any(map(_LABEL.match, lines[number + 1 : number + 2]))
    if has_mailbox or is_block:
        both = " ".join(lines[number : number + 6])
        if _has_moment(both) or (is_block and _has_mailbox(both)):
            return True
    return bool((_WEEKDAY.search(line) or _has_moment(line)) and _WROTE_AT_END.search(line))


def _attributes_what_follows(lines: Sequence[str], number: int) -> bool:
    """Whether the attribution that ends in this line may be that of all below. Above a marked quote stands its own
    attribution; with an empty line between and words above, the quote may be the beginning of the older mail, as Yahoo
    and Outlook leave it.
    """
    attribution = _paragraph_above(lines, number)
    words_above = (lines[above].strip() for above in range(number - len(attribution), -1, -1))
    return bool(_MAILBOX.search(" ".join(attribution))) and any(words_above)


def _is_quoted_attribution(lines: Sequence[str], number: int) -> bool:
    """Whether a quote is an attribution alone: what it speaks of may stand below without marks, as Supercite and phones
    leave it.
    """
    if not (_SAYS_WROTE.search(lines[number]) and _has_mailbox(lines[number])):
        return False
    if number and _QUOTE.match(lines[number - 1]):
        return False
    below = number + 1
    while below < len(lines) and not lines[below].strip("> \t"):
        below += 1
    return below < len(lines) and not _QUOTE.match(lines[below])


def _is_above_a_quote(lines: Sequence[str], number: int) -> bool:
    """Whether a marked quote follows a line and the next; below an empty line only if no words stand above them all."""
    quote = _next_line(lines, number + 2)
    is_near = quote == number + 2 or not any(line.strip() for line in lines[:number])
    return is_near and quote < len(lines) and bool(_QUOTE.match(lines[quote]))


def _is_doubtful_rule(lines: Sequence[str], number: int) -> bool:
    """Whether a line is a rule, with words in it or not; but for a table's, and the kernel's own in a log."""
    line = lines[number].strip()
    if len(line) <= 4 or not (_RULE_ENDS.match(line) and _RULE_ENDS.match(line, len(line) - 2)):
        return False
    if len(line) > 2 * _TELLING or any(map(str.isalnum, line)):
        return not _KERNELS_RULE.match(line)
    below = lines[number + 1] if number + 1 < len(lines) else ""
    is_row = any(map(str.isdigit, below)) and not below.rstrip().endswith((":", "："))
    is_head = _LABEL.match(below) or _has_mailbox(below) or _has_moment(below) or _WEEKDAY.search(below)
    if is_row and not is_head:
        return False
    above = range(number - 1, max(-1, number - _LONGEST_TABLE), -1)
    paragraph = takewhile(str.strip, (lines[place] for place in above))
    return not any(_BARE_RULE.match(other) for other in paragraph)  # nor the last one of a table


def _has_mailbox(text: str) -> bool:
    return "@" in text and bool(_MAILBOX_OR_BARE.search(_LINK.sub("", text)))  # a link may hold a Message-ID


def _has_moment(text: str) -> bool:
    text = text[: 2 * _TELLING + 1]
    return bool(_DATED.search(text) and (_MOMENT.search(text) or _DAY.search(text)))


def _paragraph_above(lines: Sequence[str], number: int) -> Sequence[str]:
    """Return the lines of a paragraph down to a line, at most four."""
    start = number
    while start and start > number - 3 and lines[start - 1].strip() and not _QUOTE.match(lines[start - 1]):
        start -= 1
    return lines[start : number + 1]


def holds_older_mail(text: str) -> bool:
    """Whether an older mail without quote marks begins in a text: everything below is quoted."""
    return above_older_mail(text) != text


def above_older_mail(text: str) -> str:
    """Return a text, verbatim, down to where an older mail without quote marks begins."""
    lines = text.split("\n")
    last_patch = _last_patch(lines)
    begins = (number for number in range(len(lines)) if _starts_older_mail(lines, number, last_patch))
    first = next(begins, None)
    return text if first is None else "\n".join(lines[:first])


def _last_patch(lines: Sequence[str]) -> int:
    """Return the number of the last line that looks like one of a patch, -1 if none does. A block of headers above it
    belongs to the patch, not to an older mail.
    """
    return next((number for number in range(len(lines) - 1, -1, -1) if _PATCH.match(lines[number])), -1)


def _starts_older_mail(lines: Sequence[str], number: int, last_patch: int) -> bool:
    line = lines[number]
    if _is_above_unmarked(lines, number):
        return True
    if line[:1] not in _BEGINNINGS and ":" not in line and "：" not in line:
        return False  # most lines, on which the patterns would be slow
    if _OLDER_MAIL.match(line.strip()) and not _LIST_FOOTER.match(line.strip()):
        return True
    below_rule = bool(_RULE.match(line))
    if below_rule:
        number = _next_line(lines, number + 1)
    if number >= len(lines) or not _FIRST_OF_BLOCK.match(lines[number]):
        return False
    # From, and two of Sent, To and Subject; below a rule one of them. The head of a patch has From, Date and Subject,
    # too: git's line above it, or a diff below, tells that it is one.
    if number and _GIT_HEAD.match(lines[number - 1]):
        return False
    block = [match for line in lines[number + 1 : number + 8] if (match := _IN_BLOCK.match(line))]
    names = {name for match in block for name, value in match.groupdict().items() if value}
    if len(names) < 2 - below_rule:
        return False
    return "to" in names or last_patch < number


def _is_above_unmarked(lines: Sequence[str], number: int) -> bool:
    """Whether this line has an attribution's words behind quote marks, with no quote above it; and none below, unless
    marks end it, too.
    """
    if not lines[number].startswith(">>>") or not _MARKS_NOTHING.match(lines[number]):
        return False
    below = _next_line(lines, number + 1)
    if below >= len(lines) or (_QUOTE.match(lines[below]) and not lines[number].rstrip().endswith(">>>")):
        return False
    above = (lines[place] for place in range(number - 1, max(-1, number - 20), -1) if lines[place].strip())
    return not _QUOTE.match(next(above, ""))


def _next_line(lines: Sequence[str], number: int) -> int:
    """Return the number of the first line from this one on that is neither empty nor an ellipsis."""
    while number < len(lines) and (not lines[number].strip() or _ELLIPSIS.match(lines[number])):
        number += 1
    return number


def _head_at_top(lines: Sequence[str]) -> int:
    """Return the line of the first quote if only From and Date of the answered mail stand above it, as scripts write
    them instead of "… wrote:" (seen in netdev's replies of 2021 to 2025); else 0.

    An older mail without marks may begin so, too, if it begins with a quote: `without_doubt` knows nothing of this.
    """
    from_, date, quote = (*lines[:3], "", "", "")[:3]
    sent = _IN_BLOCK.match(date)
    return 2 if _FIRST_OF_BLOCK.match(from_) and sent and sent["sent"] and _QUOTE.match(quote) else 0


def _attribution_without_marks(keep: Sequence[TextLine], lines: Sequence[str], number: int) -> int:
    """Return of how many kept lines an attribution consists that ends at this line, if the mail below it has no quote
    marks; else 0.

    It must tell more than one above a marked quote: an address or a day, and "wrote" or a moment.
    """
    if not lines[number].rstrip().endswith((":", "：")) or not (length := _attribution(keep)):
        return 0
    text = " ".join(line.text.strip() for line in keep[-length:])[-500:]
    mailbox, wrote = _MAILBOX.search(text), re.search(WROTE, text)
    tells = (mailbox and (wrote or _MOMENT.search(text))) or (wrote and _ON_A_DAY.match(text))
    tells = tells or _KOREAN.search(text) or _BY_MAILBOX.fullmatch(text)
    following = _next_line(lines, number + 1)
    return length if tells and following < len(lines) and not _QUOTE.match(lines[following]) else 0


def _attribution(keep: Sequence[TextLine]) -> int:
    """Return how many lines from the end "On …, Lee Park wrote:" takes, of up to three lines, with what is empty below
    it; 0 if the kept lines don't end in one.
    """
    last = len(keep)
    while last > max(0, len(keep) - 4) and (not keep[last - 1].text.strip() or _ELLIPSIS.match(keep[last - 1].text)):
        last -= 1
    if not last:
        return 0
    above = [text_line.text.strip() for text_line in keep[max(0, last - 3) : last]]
    end = above[-1][-300:]
    if len(end) < 20 and len(above) > 1:  # "a écrit :" may be wrapped in the middle
        end = f"{above[-2][-200:]} {end}"
    if not _ATTRIBUTION_END.search(end) or above[-1].startswith("#"):
        return 0
    is_bare = len(above[-1]) < 80 and _SAYS_WROTE.search(above[-1])  # "Lee Park wrote:", without a date
    starts = 1 if _ATTRIBUTION_START.match(above[-1][:300]) or is_bare else 0
    for number in range(2, len(above) + 1):
        line = above[-number]
        if not line or line.startswith("#") or _TRAILER.match(line):
            break
        if _ON_A_DAY.match(line[:300]):
            starts = number
            break
    return len(keep) - last + starts if starts else 0
