"""Parsing of a model's response into reasoning steps and a final answer. Pure text work.

Steps are sentences (MAGIC paper, §3.2). The answer is what the response marks as such. Where it marks nothing, the last
sentence is taken and ``found`` is False, so that missing answers are counted, not guessed in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lmms_patch.magic.score.containers import written_out
from lmms_patch.magic.score.vocabulary import pattern

MARKERS = ("tag", "line", "json", "boxed", "sentence", "after thinking")
"""How an answer was marked, best first: ``<answer>``, "Answer: X", a JSON key, \\boxed{X}, "the answer is X", a short text after ``</think>``."""

_THOUGHT = pattern(
    r"(?m)^[ \t>#*_]{0,20}(?:thought process|thoughts?|reasoning|reasoning steps|thinking|rationale)[*_]*[ ]?[:：][*_]*[ \t]*",
)
_ECHO = pattern(r"(?m)^[ \t]*(?:#+[ \t]*image\b.*|[*_]*question[*_]*[ ]?[:：].*)$")
_NEXT_EXAMPLE = pattern(r"(?m)^[ \t]*(?:#+[ \t]*(?:image|example)[ \t]+\d|[*_]*question[*_]*[ ]?[:：])")
_QUESTION = pattern(r"(?m)^[ \t]*[*_]*question[*_]*[ ]?[:：][*_]*(?P<text>.*)$")
_FOREIGN = pattern(
    r"(?m)^([ \t>#*_-]{0,20})(?:答案|最终答案|回答|respuesta|réponse|resposta|risposta|antwort|ответ)(?=[*_]*[ ]?[:：])"
)
_NO_COLON = pattern(
    r"(?m)^([ \t]*)(?:[*_]{2}((?:final )?answer)[*_]{2}[ \t]+(?=[^\s:：])|((?:final )?answer)[ \t]+[-–—][ \t]+)"
)
# adapters that keep special tokens give these, and what a model without a stop wrote behind them
_END_TOKENS = pattern(r"(?s)(?<=\S)\s*(?:<\|(?:endoftext|im_end|eot_id|end|eom_id)\|>|</s>|<eos>|<end_of_turn>).*\Z")
_LINE = pattern(
    r"(?m)(?:(?P<start>^[ \t>#*_-]{0,20}(?:\d{1,3}[.)][ ]?)?[*_]{0,4})|(?<=[\s(])[*_]{0,4})(?P<kind>(?:(?:the|my)[ ])?(?:(?:final|short|full)[ ])?)"
    r"(?P<word>answer)[*_]*[ ]?[:：][*_]*",
)
_TAG = pattern(r"(?s)<answer>(.*?)(?:</answer>|\Z)")
_JSON = pattern(
    r"[\"'](?:final_|short_)?answer[\"']\s*:\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|(-?\d+(?:\.\d+)?|true|false))",
)
_SAID = pattern(
    r"(?s)(?<!whether )(?<!if )(?:\b(?:the|my)(?: (?:final|correct|short))? answer(?: to (?:the|this) question)?"
    r" (?:is|would be|should be|must be)(?: that)?)\s*(?:[:：]\s*)?"
    r"(?P<said>\S.*)$",
)
# a question may hold "the answer is" itself
_QUOTED_QUESTION = pattern(r"(?<=to the question) [\"'“‘][^\"”’\n]{1,300}?[\"'”’](?= (?:is|would|must|should)\b)")
_HEADING = pattern(r"(?m)^[ \t]{0,20}(?:#{1,6}[ \t]*)?[*_]{0,4}(?:the )?(?:final |short )?answer[*_]*[ \t]*$")
_NO_STEP = pattern(r"[\s#*_]{0,20}(?:the )?(?:final |short )?answer(?:[*_]*\s*[:：])?[*_\s]*")
_SECTION_NAME = r"(?:explanation|reasoning|rationale|thought process|justification)[*_]*[ ]?[:：][*_]*"
_SECTION = pattern(rf"(?m)(?:^[ \t#*_]{{0,20}}|(?<=\s)[*_]{{2}}){_SECTION_NAME}")
_SECTION_HERE = pattern(rf"[ \t#*_]{{0,20}}{_SECTION_NAME}")
_REST_OF_LINE = re.compile(r"[ \t]*(\S[^\n]*(?<![:\s]))[ \t]*(?=\n|\Z)")
_PARAGRAPH = re.compile(r"\s*(.+?)(?=\n\s*\n|\Z)", re.S)
_SAYS = re.compile(r"[ \t]*\w|\s*\S")
_WRAPPING = re.compile(r"(?P<open>\\(?:boxed|text|textbf|mathbf|mathrm)\{)|[{}]")
_LIST_MARK = pattern(
    r"^[ \t>]*(?:#+[ \t]+|(?:[-*•–+][ \t]+)?(?:\(?\d{1,2}[.)][ \t]+|\(?(?-i:[a-z])[.)][ \t]+|step[ ]\d+[.:)][ \t]*)|[-*•–+][ \t]+)(?=\S)",
)
_LABEL_ONLY = pattern(
    r"[\s*_`\"'(\[]*(?:(?:R|region|box|bounding box)?[ ]?#?\d{1,2}|[A-Za-z]|step[ ]\d+)[\s*_`\"')\]]*(?:[.:][*_`]*)?"
)
_END = re.compile(r"(?:(?<![.!?…])[.!?…]+[\"'”’)\]*_`]*(?=\s|$)|[。！？]+)")
_NEVER = re.compile(r"(?:e\.g|i\.e|cf|vs|approx|ca|fig|nos?|nr|mrs?|ms|dr|st|prof|resp|incl|eg|ie)\.")
"""An abbreviation that never ends a sentence."""
# an abbreviation that ends a sentence where no small letter follows
_PERHAPS = re.compile(r"(?:etc|[ap]\.m|u\.[sk]|[js]r|al|inc|co)\.")


@dataclass(frozen=True)
class Response:
    """A parsed response.

    Attributes:
        steps: the sentences of the reasoning, in order, without list marks: everything before and after a marked
            answer. Where no answer is marked, the last sentence is among them.
        answer: the final answer; the last sentence where none is marked; "" where the response is empty.
        found: whether an answer is marked.
        marker: how it is marked: one of ``MARKERS``; "" where it is not.
    """

    steps: tuple[str, ...]
    answer: str
    found: bool
    marker: str = ""

    @property
    def reasoning(self) -> str:
        """The steps as a single text."""
        return "\n".join(self.steps)


def parse(response: str, question: str = "") -> Response:
    r"""Split a response into reasoning steps and final answer.

    The text after ``</think>`` is searched for the answer first, then the whole. The last marked answer counts ("Final
    answer" after "Answer"): the rest of its line, or the paragraph that follows. A further example that the model makes
    up ("## Image 2 ..." with a question of its own) is cut off.

    Boxes count in steps, and the marked answer is no step: the first sentence after "Answer:" ("Answer: the cup in
    R4"), the content of ``<answer>`` or \boxed{}. A sentence such as "So the answer is in R4" is a step, and so are
    further sentences on the answer's line.

    Args:
        response: the text as generated.
        question: what was asked; with it, a repeated question is not mistaken for a made-up one.

    >>> parse("R1 shows a dog. It is brown.\n**Answer**: brown")
    Response(steps=('R1 shows a dog.', 'It is brown.'), answer='brown', found=True, marker='line')
    """
    thought, said = _thinking(_HEADING.sub("Final answer:", _plain(written_out(response))))
    said = _one_example(said, question)
    thought = thought if said.strip() else _one_example(thought, question)
    whole = "\n".join(filter(None, [thought, said]))
    for text, before in [(said, thought)] if said.strip() else [(whole, "")]:
        # From the surest mark to the weakest: the first that is found names the answer.
        for marker, look in (
            ("tag", partial(_last_of, _TAG)),
            ("line", _on_a_line),
            ("json", partial(_last_of, _JSON)),
            ("boxed", _boxed),
            ("sentence", _in_a_sentence),
        ):
            if (marked := look(text)) is not None and re.search(r"\w", marked[0]):
                answer, rest = marked
                return Response(sentences("\n".join([before, rest])), _bare(answer), True, marker)
    # Without a mark, one or two sentences after the thoughts are taken as the answer.
    if thought.strip() and said.strip():
        # "3." alone is an answer, but no sentence
        after = sentences(said) or tuple(said.split())
        answer = _clean(" ".join(after))
        # more sentences than two explain, and any of them might be the answer
        if 0 < len(after) <= 2 and re.search(r"\w", answer):
            return Response(sentences(thought), answer, True, "after thinking")
    steps = sentences(whole)
    if ends := _ends_with_a_number(whole, bool(steps)):
        return Response(steps, ends, False)
    return Response(steps, _clean(steps[-1]) if steps else "", False)


def _plain(response: str) -> str:
    """Return the response with various models' marks for thoughts and answers unified, without end tokens."""
    # Kimi-VL writes ◁think▷
    text = re.sub("◁(/?)think▷", r"<\1think>", _END_TOKENS.sub("", response))
    # GLM-4.5V puts its answer in a box of tokens, LLaVA-CoT in <CONCLUSION>
    text = re.sub(r"<\|begin_of_box\|>|<conclusion>", "<answer>", text, flags=re.I)
    text = re.sub(r"<\|end_of_box\|>|</conclusion>", "</answer>", text, flags=re.I)
    text = _FOREIGN.sub(r"\1Answer", text)
    return _NO_COLON.sub(lambda match: f"{match[1]}{match[2] or match[3]}: ", text)


def _ends_with_a_number(text: str, steps: bool) -> str:
    """Return a number or letter alone at the end of a text: the answer rather than a step.

    "3." after steps is not returned: it is the start of a list item that was cut.
    """
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "").strip()
    if _LABEL_ONLY.fullmatch(last) and not sentences(last):
        # "3." after steps is a list item that was cut, not the answer.
        return "" if steps and last.endswith((".", ")", ":")) else _clean(last)
    piece = (_pieces(last) or [""])[-1]
    return piece if piece.isdigit() else ""


def _bare(answer: str) -> str:
    """Return an answer without an introduction ("The final answer is ...")."""
    inner = _boxed(answer)
    if inner is not None:
        return inner[0]
    introduced = _SAID.match(answer)
    return _clean(introduced["said"]) if introduced else answer


def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, without list marks and headings.

    Each line is a sentence of its own unless the next line continues in lower case. Abbreviations ("e.g. a cup") and
    decimals do not end a sentence, and a box that only labels what follows ("R1. The man stands.") is not a sentence by
    itself.

    >>> sentences("1. R1. The cup is 2.5 cm, e.g. small. 2. It is red.")
    ('R1. The cup is 2.5 cm, e.g. small.', 'It is red.')
    """
    out = []
    for block in _blocks(_THOUGHT.sub("", _ECHO.sub("", text))):
        pending = ""
        for piece in _pieces(block):
            joined = _LIST_MARK.sub("", f"{pending} {piece}".strip(), count=1).strip()
            if _LABEL_ONLY.fullmatch(joined):
                pending = joined
                continue
            pending = ""
            if re.search(r"\w", joined) and not _NO_STEP.fullmatch(joined):
                out.append(joined)
        # A label alone on its line still names its box.
        if re.search(r"[A-Za-z]\w", pending):
            out.append(pending)
    return tuple(out)


def _blocks(text: str) -> list[str]:
    """Return the lines of a text, joined where a sentence continues in the next line."""
    out: list[list[str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or re.fullmatch(r"[-*_=#\s]+", stripped):
            out.append([])
        # A line that begins in lower case goes on with the sentence of the line before.
        elif out and out[-1] and stripped[0].islower() and not _LIST_MARK.match(stripped) and not _closes(out[-1]):
            out[-1].append(stripped)
        else:
            out.append([stripped])
    return [" ".join(block) for block in out if block]


def _closes(lines: Sequence[str]) -> bool:
    """Return whether a block of lines ends with a mark after which no sentence continues."""
    # the last lines alone, since this is asked at every line of a long block
    return re.search(r"[.!?:;]\W*$", " ".join(lines[-2:])[-20:]) is not None


def _pieces(block: str) -> list[str]:
    """Cut a block where sentences end."""
    out, start = [], 0
    for match in _END.finditer(block):
        if match.start() >= start and _ends(block, match):
            out.append(block[start : match.end()].strip())
            start = match.end()
    return [piece for piece in [*out, block[start:].strip()] if piece]


def _ends(block: str, match: re.Match[str]) -> bool:
    """Return whether a sentence ends at this mark."""
    mark, rest = match[0], block[match.end() : match.end() + 60].lstrip()
    # These marks end a sentence in any language, whatever follows.
    if not rest or mark[0] in "。！？!?":
        return True
    before = block[max(0, match.start() - 60) : match.start()].split(" ")
    token = (before[-1] + mark.rstrip("\"'”’)]*_`")).lower().lstrip("(*_`\"'[")
    lower = rest.lstrip("\"'“‘(*_`[")[:1].islower()
    if _NEVER.fullmatch(token):
        return False
    if _PERHAPS.fullmatch(token) or mark.startswith(("..", "…")):
        return not lower
    # A single letter with a period is an initial ("J. Smith") or an option's label ("a.").
    if re.fullmatch(r"[a-z]\.", token):
        return len(before) > 1 and before[-2].islower() and not lower
    return True


def _one_example(text: str, question: str = "") -> str:
    """Return the text without further examples made up by the model after the answer.

    Only an answer on a line of its own ends an example: thoughts about how to answer contain the word too.
    """
    lines = (match for match in _LINE.finditer(text) if match["start"] is not None)
    answered = next((match for match in lines if _SAYS.match(text, match.end())), None)
    if answered is None:
        return text
    own = _words(question)
    # A model that repeats the item's own question has not begun a new example.
    for following in _NEXT_EXAMPLE.finditer(text, answered.end()):
        asked = _QUESTION.search(text, following.start(), following.start() + 400)
        if not (question and asked and _words(asked["text"]) == own):
            return text[: following.start()]
    return text


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _thinking(text: str) -> tuple[str, str]:
    """Return the text inside ``<think>`` (even with a tag missing at start or end), and the text after."""
    parts = re.split(r"</think(?:ing)?>", text, flags=re.I)
    if len(parts) > 1:
        thought, said = "\n".join(parts[:-1]), parts[-1]
    elif opening := re.search(r"<think(?:ing)?>", text, re.I):
        thought, said = text[opening.end() :], ""
        thought = f"{text[: opening.start()]}\n{thought}"
    else:
        thought, said = "", text
    return re.sub(r"</?think(?:ing)?>", "\n", thought, flags=re.I).strip(), said


_Found = tuple[str, str] | None


def _last_of(marks: re.Pattern[str], text: str) -> _Found:
    """Return the last non-empty match of a pattern in a text, and the remaining text."""
    found = [match for match in marks.finditer(text) if match[match.lastindex or 0].strip()]
    return (
        (_clean(found[-1][found[-1].lastindex or 0]), text[: found[-1].start()] + "\n" + text[found[-1].end() :])
        if found
        else None
    )


def _on_a_line(text: str) -> _Found:
    """Return what follows the last non-empty "Answer:" (the rest of its line, else the next paragraph), and the remaining text."""
    for match in reversed(
        [
            match
            for match in _LINE.finditer(text)
            if match["start"] is not None or match["kind"] or match["word"][0] == "A"
        ]
    ):
        section = _SECTION_HERE.match(text, match.end()) or _SECTION.search(text, match.end())
        end = section.start() if section else len(text)
        paragraph = _REST_OF_LINE.match(text, match.end(), end) or _PARAGRAPH.match(text, match.end(), end)
        if paragraph and re.search(r"\w", paragraph[1]):
            further = " ".join(_pieces(paragraph[1])[1:])
            return _clean(paragraph[1]), "\n".join([text[: match.start()], further, text[paragraph.end() :]])
    return None


def _boxed(text: str) -> _Found:
    # the last, as of all marks
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, place = 1, start + len("\\boxed{")
    while place < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    answer = _clean(text[start:place])
    # An unclosed brace means that the answer was cut.
    return (answer, text[:start] + text[place:]) if answer and not depth else None


def _in_a_sentence(text: str) -> _Found:
    """Find "The answer is X" in the last two sentences; return X and the whole text."""
    steps = sentences(_QUOTED_QUESTION.sub("", text))
    for step in reversed(steps[-2:]):
        if match := _SAID.search(step):
            return _clean(match["said"]), text
    return None


def _unwrapped(text: str) -> str:
    r"""Remove \boxed{...}, \text{...} and the like, also nested, unless an inner brace remains."""
    out: list[str] = []
    # For each open brace: its place in ``out``, and whether it may still be removed.
    held: list[tuple[int, bool]] = []
    done = 0
    for match in _WRAPPING.finditer(text):
        out += [text[done : match.start()], match[0]]
        done = match.end()
        if match[0] != "}":
            held.append((len(out) - 1, match["open"] is not None))
            continue
        if not held:
            continue
        place, comes_off = held.pop()
        if comes_off:
            out[place] = out[-1] = ""
        elif held:
            held[-1] = (held[-1][0], False)
    return "".join([*out, text[done:]])


def _clean(answer: str) -> str:
    r"""Return an answer without \boxed, LaTeX text, stars and outer quotes."""
    text = re.sub(r"(?:^\$+|(?<!\$)\$+(?=[.]?$))", "", _unwrapped(answer.strip()).strip())
    text = re.sub(r"\*\*|__|`", "", text).strip(" \t\n*_")
    if len(text) > 1 and ((text[0] in "\"'“‘" and text[-1] in "\"'”’") or (text[0], text[-1]) == ("{", "}")):
        text = text[1:-1]
    return " ".join(text.split())
