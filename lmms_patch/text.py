"""Names and texts that anybody may have chosen, made harmless for each place where they are shown. Pure.

Every text of a run, a task file, a gate file or a model goes through one of these on its way out: ``line`` and
``block`` take out what acts on a terminal or on neighbouring text, ``masked`` and ``arguments`` take out secrets, and
one function for each form (``markdown``, ``latex``, ``csv_cell``, ``printed``) escapes what that form would act on.
"""

from __future__ import annotations

import functools
import hashlib
import html
import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
LONGEST = 200
"""Characters of a name."""
SENTENCE = 2_000
"""Characters of a message on one line."""
_MARKS = 8
"""Accents on one letter: living scripts need fewer, and hundreds of them run over the neighbouring lines."""

# --- characters -----------------------------------------------------------------------------------

_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Why ranges and not Unicode categories: what is "unassigned" depends on the version of Python, and names must not.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters; terminals act on both ranges
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of text
    # Characters that take no room
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0"
    # More of these, and tags
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff"  # halves of characters; private use
    "\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0xF0000, 0x10000))
    + "]"
)
# Emoji and several scripts need joiners between two of their characters; anywhere else a joiner only makes equal names
# differ.
_JOINER = re.compile(
    "(?<![^\x00-\u02ff\u200c\u200d\ufffd])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff\u200c\u200d\ufffd])"
)
_ACCENTS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0902\u0941-\u0948\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1"
    "\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
)
_PILE = re.compile(f"([{_ACCENTS}]{{{_MARKS}}})[{_ACCENTS}]+")
_ACCENT = re.compile(f"[{_ACCENTS}]")


def block(text: Any) -> str:
    r"""Return a text whose every character can be seen; lines and tabs stay.

    Control characters, halves of characters, marks that turn the direction of text and characters without width become
    U+FFFD; every kind of line end becomes a line feed; of more than 8 accents on one letter the rest is dropped.
    Secrets are ``masked``.

    >>> block("a\x00b\u202ec\r\nd")
    'a�b�c\nd'
    """
    given = masked(str(text))
    if given.isascii() and given.isprintable():
        return given
    seen = _UNSEEN.sub("\ufffd", _BREAK.sub("\n", given))
    return _PILE.sub(r"\1", _JOINER.sub("\ufffd", seen))


def line(text: Any, most: int | None = None) -> str:
    r"""Return ``block`` on one line, white space as single spaces.

    Args:
        text: any.
        most: the middle of a longer one is left out; None: it stays whole.

    >>> line("a\nb\tc"), line("x" * 50, 21)
    ('a b c', 'xxxxxxxxxxxxx … xxxxx')
    """
    given = str(text)
    if most is not None and len(given) > 8 * most:  # the middle of a very long text is not even looked at
        given = f"{given[: 4 * most]} {given[-4 * most :]}"
    shown = " ".join(block(given).split())
    if most is None or len(shown) <= most:
        return shown
    end = max(0, (most - 3) // 3 - 1)
    return f"{shown[: most - 3 - end]} … {shown[len(shown) - end :]}"


def clean(text: Any, most: int = LONGEST) -> str:
    r"""Return a name: ``line``, cut after so many characters.

    >>> clean("a\x00b"), clean("a long name", 7)
    ('a�b', 'a long…')
    """
    given = str(text)
    if len(given) <= most and given.isascii() and given.isprintable() and "  " not in given:
        return masked(given).strip()
    shown = " ".join(block(given[: 4 * most]).split())
    return shown if len(shown) <= most and len(given) <= 4 * most else f"{shown[: most - 1].rstrip()}…"


def harmless(value: Any) -> Any:
    """Return plain JSON types with ``block`` of every text in them, for files that other programs read."""
    if isinstance(value, str):
        return block(value)
    if isinstance(value, Mapping):
        return {block(key): harmless(inner) for key, inner in value.items()}
    return [harmless(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def whole(text: str) -> str:
    """Return a text in which the two halves of a character are joined, and half a character by itself is U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 writes the two halves one after the other, which decoding joins
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, and how many it had.

    >>> cut("abcdef", 3)
    'abc… (6 characters)'
    """
    if len(text) <= most:
        return text
    end = most
    while end > 1 and _ACCENT.match(text[end]):  # not in the middle of a character with its accents
        end -= 1
    return f"{text[:end]}… ({len(text):,} characters)"


# --- names ----------------------------------------------------------------------------------------


def unique(labels: Mapping[K, str]) -> dict[K, str]:
    """Return the labels as names. Names that become equal get a short hash of their key as suffix."""
    shown = {key: clean(label) or "unnamed" for key, label in labels.items()}
    often = Counter(shown.values())
    return {key: label if often[label] == 1 else f"{label} #{_hash(key)}" for key, label in shown.items()}


def _hash(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:8]


# --- secrets --------------------------------------------------------------------------------------

MASK = "..."


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


_ALWAYS = _words(
    "secret secrets password passwords passwd passphrase passcode pwd apikey apikeys accesskey secretkey privatekey authtoken accesstoken hftoken"
    " credential credentials cookie cookies bearer jwt auth authorization authentication connectionstring dsn sas"
)
"""Words that make a key secret wherever they stand in it."""
_GLUED = (
    "password",
    "passwd",
    "secret",
    "passphrase",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authtoken",
    "accesstoken",
)
"""Ends of words that are written together: ``openaiapikey``."""
_OWNERS = _words(
    "api access secret private openai anthropic azure google gemini aws bedrock hf hub huggingface github gh gitlab git wandb replicate together"
    " dashscope deepseek mistral cohere groq fireworks openrouter nvidia reka zhipu moonshot xai perplexity account subscription client service"
    " auth admin oauth refresh session user personal security storage bot slack login signing encryption license licence master judge"
)
"""Words that make a following ``key`` or ``token`` secret."""
_WORLD = _words(
    "db database smtp http https proxy login user api admin root mysql postgres pg redis mongo ssh ftp basic email"
)
"""Words that make a following ``pass`` a password."""
_VALUE = 400
"""Characters of a value that are looked at to tell whether it is a secret."""
_LIKE_A_KEY = "a1" * 10
_SIGNED = _words("sas url x amz hmac request shared access")
_PLAIN_VALUES = frozenset(("true", "false", "none", "null", "yes", "no", "", MASK))
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_KEY = re.compile(
    r"""(?:(?<=[\s,;&?#({\["'|])|^)(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)[ ]?(?P<sign>[=:])(?!//)[ ]?"""
)
_NEXT = re.compile(r"""(?:[,;&][ ]?|\s)(?:[A-Za-z_][\w.-]*=|(?P<quote>["'])[\w. -]{1,80}(?P=quote) ?[:=])""")
_QUOTED = re.compile(r"""(?P<quote>["'])(?:[^"'\\]|\\.|(?!(?P=quote))["'])*(?P=quote)""", re.DOTALL)
_LOGIN = re.compile(r"(?<=://)[^/?#\s,]{1,400}@")
_LOOKS = re.compile(
    r"(?<![\w-])(?:(?:sk|rk|pk)-(?=[\w-]{0,30}\d)[\w-]{16,}|glpat-[\w-]{16,}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
    r"|\bhf_[A-Za-z0-9]{16,}|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bA[KS]IA[A-Z0-9]{16}\b"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_HINT = re.compile(r"://|[?&]|(?:sk|rk|pk|glpat)-|hf_|gh[opsur]_|github_pat|A[KS]IA|AIza|xox|eyJ|PRIVATE|Bearer|Basic")
"""What none of the other patterns can do without."""
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{8,}")
_IN_ADDRESS = re.compile(
    r"(?i)([?&](?:[\w.-]{0,40}[_-])?(?:key|api-?key|token|sig|signature|sas|secret|password|pwd|pass|code|credential|auth|access_token)=)[^&\s\"',;)}\]#]+"
)


def masked(text: str) -> str:
    """Return a text of any kind without what looks like a secret: known forms of keys, logins and keys in addresses.

    >>> masked("see https://me:pw@host/v1?key=abc&page=2 with sk-abcdefgh12345678")
    'see https://...@host/v1?key=...&page=2 with ...'
    """
    if not _HINT.search(text):
        return text
    plain = _SCHEME.sub(rf"\1 {MASK}", _LOOKS.sub(MASK, text))
    return _IN_ADDRESS.sub(rf"\1{MASK}", _LOGIN.sub(f"{MASK}@", plain))


def arguments(text: str) -> str:
    """Return model arguments without what must not be published: ``masked``, and the values of keys that name a secret.

    Two runs that differ in such values alone are runs of one model; so every other argument stays as it is.

    >>> arguments("model_version=x,api_key=sk-1,token_merging=2,base_url=https://me:pw@host/v1")
    'model_version=x,api_key=...,token_merging=2,base_url=https://...@host/v1'
    """
    return masked("".join(_without_values(text)))


def _without_values(text: str) -> Iterator[str]:
    at = following = 0
    while match := _KEY.search(text, at):
        start = match.end()
        if is_secret(match["key"], _LIKE_A_KEY):
            if following < start:
                after = _NEXT.search(text, start)
                following = after.start() if after else len(text)
            end = _value_end(text, start, following)
            if is_secret(match["key"], text[start : min(end, start + _VALUE)]):
                quote = text[start] if text[start : start + 1] in ('"', "'") and end - start > 1 else ""
                yield f"{text[at:start]}{quote}{MASK}{quote}"
                at = end
                continue
        yield text[at:start]
        at = start
    yield text[at:]


def _value_end(text: str, start: int, following: int) -> int:
    """Return where the value that starts here ends: a quoted text, or all up to the next key."""
    if text[start : start + 1] in ('"', "'") and (quoted := _QUOTED.match(text, start)):
        return quoted.end()
    end = following
    while end > start and text[end - 1] in "}]) \t\n":
        end -= 1
    return end


def is_secret(key: str, value: str) -> bool:
    """Return whether an argument of this name and value is a secret.

    >>> is_secret("hf_token", "abc"), is_secret("max_new_tokens", "512"), is_secret("image_token", "<image>"), is_secret("use_auth_token", "True")
    (True, False, False, False)
    """
    value = value.strip().strip("'\"")
    if value.lower() in _PLAIN_VALUES:
        return False
    words = [word.lower() for word in _PARTS.findall(key)]
    if not words or any(one == "public" for one in words):
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    pairs = set(itertools.pairwise(words))
    if (
        any(word in _ALWAYS or word.endswith(_GLUED) for word in words)
        or {("api", "key"), ("access", "key"), ("connection", "string")} & pairs
    ):
        return True
    if last in ("key", "keys", "token", "tokens"):
        plain = value.replace(".", "", 1).isdigit() or value[:1] in (
            "<",
            "[",
        )  # a number of tokens, or one of a model's own
        owned = before in _OWNERS or (not before and last != "tokens")
        return (
            not plain and (owned or _looks_random(value)) if last.startswith("token") else owned or _looks_random(value)
        )
    if last == "pass":
        return not before or before in _WORLD
    return last in ("sig", "signature") and (not before or before in _SIGNED)


def _looks_random(value: str) -> bool:
    """Return whether a value is long, and of letters and digits in one word, as keys are and names of fields are not."""
    return (
        bool(re.fullmatch(r"[\w.~+=-]{16,}", value))
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
    )


# --- forms ----------------------------------------------------------------------------------------

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.IGNORECASE)


def csv_cell(text: str) -> str:
    """Return a text that no spreadsheet runs: one that begins as a formula does gets an apostrophe in front.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell("-"), csv_cell("-1+2")
    ("'=1+1", '-0.5', '-', "'-1+2")
    """
    shown = block(text)
    if len(shown) > 1 and (shown[0] == "\t" or _FORMULA.match(shown)) and not _NUMBER.fullmatch(shown):
        return "'" + shown
    return shown


def from_csv_cell(text: str) -> str:
    """Return what ``csv_cell`` was given."""
    return text[1:] if text[:1] == "'" and csv_cell(text[1:]) == text else text


_MARKUP = re.compile(
    r"[\\`*~|{}<>$]|&(?=#?\w+;)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|[@#](?=\w)|!(?=\[)|:(?=//)|(?<=www)\.", re.IGNORECASE
)
_BECOMES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "$": "&#36;", ".": "&#46;", "@": "@&#8203;", "#": "#&#8203;"}
_LINKS = re.compile(r"\]\s?[(\[:]|\[\^")
_OPENS = re.compile(r"(?:[-+=#]|\d{1,9}[.)])(?=[\s\-+=#]|$)")


def markdown(text: str) -> str:
    r"""Return a text in one line that Markdown shows as it is, in a cell, a heading or a paragraph: no markup, link, mention or HTML.

    >>> markdown("**a** <b> a_b _c_ https://b @me"), markdown("-0.1 [-0.2, 0.0]")
    ('\\*\\*a\\*\\* &lt;b&gt; a_b \\_c\\_ https:&#8203;//b @&#8203;me', '-0.1 [-0.2, 0.0]')
    """
    shown = line(text)
    links = _LINKS.search(shown) is not None
    escaped = _MARKUP.sub(_marked, shown)
    if links:
        escaped = escaped.replace("[", "\\[").replace("]", "\\]")
    if match := _OPENS.match(escaped):  # what would open a list, a quotation or a heading
        escaped = f"{escaped[: match.end() - 1]}\\{escaped[match.end() - 1 :]}"
    return escaped


def _marked(match: re.Match[str]) -> str:
    one = match[0]
    return ":&#8203;" if one == ":" else _BECOMES.get(one, "\\" + one)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}
_LATEX |= {c: f"{{{c}}}" for c in "[*"}
"""``[`` and ``*`` first in a row would be options of the line end before it."""


def latex(text: str) -> str:
    r"""Return a text in one line as LaTeX shows it.

    >>> latex("50% of a_b")
    '50\\% of a\\_b'
    """
    return "".join(_LATEX.get(c, c) for c in line(text))


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a notebook: every text is shown as it is, and colours are those of the notebook, light or dark.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(line(one, LONGEST))}</{tag}>" for one in texts) + "</tr>"

    return (
        f"<table><thead>{cells('th', heads)}</thead><tbody>{''.join(cells('td', row) for row in rows)}</tbody></table>"
    )


def html_list(sentences: Iterable[str]) -> str:
    """Return a list of sentences for a notebook, every text as it is; empty where there is none.

    >>> html_list(["a < b."])
    '<ul><li>a &lt; b.</li></ul>'
    """
    items = "".join(f"<li>{html.escape(line(one, SENTENCE))}</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def size(count: float) -> str:
    """Return a number of bytes as people write it.

    >>> size(5e9), size(1.5e8), size(45_210_000), size(45_210), size(300)
    ('5.0 GB', '0.1 GB', '45 MB', '45 kB', '300 bytes')
    """
    if count >= 1e8:
        return f"{count / 1e9:,.1f} GB"
    unit, name = next(((unit, name) for unit, name in ((1e6, "MB"), (1e3, "kB")) if count >= unit), (1, "bytes"))
    return f"{count / unit:,.0f} {name}"


def said(message: object, encoding: str | None = None) -> str:
    r"""Return a message for a terminal or a log on one line of bearable length, without secrets.

    >>> said("no such\ntask: ##[error]x")
    'no such task: # #[error]x'
    """
    return printed(line(message, SENTENCE), encoding)


_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_PLAIN = {"→": "->", "−": "-", "–": "-", "×": "x", "≤": "<=", "≥": ">=", "±": "+-", "…": "..."}
"""What stands for our own signs on a stream that has no place for them."""
_OLD_COMMAND = re.compile(r"##(?=\[|vso\[)", re.IGNORECASE)


def printed(text: str, encoding: str | None = None) -> str:
    r"""Return a text for a terminal or a log: ``block``, and no line that a build server takes for a command (``::error::``, ``##[group]``).

    Args:
        text: any.
        encoding: of the stream; what it has no place for is written in plain letters where it is a sign of ours, else
            as an escape.

    >>> printed("a\n::error::b\n##[group]c")
    'a\n: :error::b\n# #[group]c'
    >>> printed("0.69 → −0.6 ☃", "ascii")
    '0.69 -> -0.6 \\u2603'
    """
    shown = _OLD_COMMAND.sub("# #", _COMMAND.sub(r"\1: ", block(text)))
    return shown if encoding is None else _in(shown, encoding)


def _in(text: str, encoding: str) -> str:
    try:
        return text.encode(encoding).decode(encoding)
    except UnicodeEncodeError as error:
        for sign, plain in _PLAIN.items():
            if not _has(error.encoding, sign):
                text = text.replace(sign, plain)
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _has(encoding: str, sign: str) -> bool:
    try:
        return bool(sign.encode(encoding))
    except UnicodeEncodeError:
        return False


@functools.cache
def log() -> Any:
    """Return the harness's logger, with ``said`` in front: the texts in our lines come from task files, docs and models."""
    from loguru import logger  # here, because the command line reads its options without it

    def harmless(record: Any) -> None:
        record["message"] = said(record["message"])

    return logger.patch(harmless)
