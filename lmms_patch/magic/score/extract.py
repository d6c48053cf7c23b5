"""The region extractor φ: which boxes a text refers to; and the renumbering of boxes in texts. Pure text work.

φ maps a step to the numbers of the boxes it names (MAGIC paper, 4.1); a chain's boxes are the union over its steps. A number outside 1..count is
*invented*: counted, never used. A box that is named only to be dismissed ("R3 is not relevant") counts as used, as φ defines it, and is also listed
separately. ``mentions`` defines what is read as a name.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.magic.score.mention_patterns import INVISIBLE, ORDINALS, WORD, WORDS
from lmms_patch.magic.score.mentions import Group, Item, groups, same_length, written_out
from lmms_patch.magic.score.response import sentences

ANOTHER = "another region"
"""The words for a box that is not shown."""

_NEAR = 100
"""How many characters around a mention can dismiss it."""
_RELEVANCE = (
    r"(?:relevant|needed|necessary|useful|important|helpful|related|of interest|involved|pertinent|required|"
    r"of (?:any )?(?:use|help)|to be considered|what (?:I|we) need)"
)
_BE = r"(?:is|are|was|were|be|seems?|appears?|looks?)(?: to be)?"
_PERTINENT = r"(?:pertinent|utile|important|n[ée]cessaire)[es]{0,2}"
_RELEVANTE = r"(?:relevante|importante|necesari[oa]|[uú]til)(?:s|es)?"
_DISMISSED_AFTER = re.compile(
    rf"[*_`\"')\]]*(?:\s*\([^()]*\))?,?\s*(?:(?:both|all|also|probably|likely|clearly|just|simply|therefore|thus)\s+)*(?:"
    rf"{_BE}(?: \w+ly)?(?:(?: not|n't)(?: \w+ly| that| very| so)? {_RELEVANCE}| (?:irrelevant|unrelated|unnecessary|unhelpful|unimportant|useless)"
    r"| (?:of no (?:use|help|interest|importance|relevance)|out of the question|beside the point|out)(?![-\w]| of (?!the question)))"
    r"|(?:can|could|may|might|should|will)(?: \w+)? be (?:ignored|skipped|excluded|disregarded|dismissed|ruled out|left (?:out|aside)|omitted|"
    r"discarded|dropped|eliminated|set aside|discounted|struck)"
    r"|(?:is|are|was|were) (?:\w+ly )?(?:ignored|skipped|excluded|disregarded|dismissed|ruled out|left (?:out|aside)|discarded|"
    r"eliminated|set aside|struck out|crossed out)\b"
    r"|(?:do|does|did)(?: not|n't) (?:matter|help|contribute|relate|play (?:a|any) (?:role|part)|"
    r"(?:seem|appear|look|need to be)(?: to be)? ?(?:relevant|related|important|useful|considered|examined))"
    r"|plays? no (?:role|part)|(?:has|have|had) (?:nothing to do with|no (?:bearing|relevance|relation))|(?:is|are) not(?=\s*[.,;]|\s*$)"
    r"|(?:都|也|则|則|并|均|就|显然|和|与|跟|與|[这該该此个個题題问問]){0,8}(?:无关|無關|不相关|不重要|不需要|没有关系)|(?:都|也|则|就)?可以?(?:忽略|排除|不看|跳过)"
    r"|[はもが]?(?:この)?(?:(?:質問|問題)とは?)?(?:関係(?:が|は)?(?:ない|ありません|あり)|無関係|不要|無視)"
    r"|(?:은|는|도|이|가)?[ ]?(?:(?:질문|문제)과[ ]?)?(?:관련이?\s*없|관계가?\s*없|무관|필요\s*없|필요하지\s*않|중요하지\s*않|무시)"
    r"|(?:ist|sind|war|waren)(?: \w+)? (?:nicht (?:\w+ )?(?:relevant|wichtig|nötig|notwendig|von Belang)|irrelevant|unwichtig|unnötig|bedeutungslos)"
    r"|spiel(?:t|en) keine Rolle|kann (?:ich )?(?:ignoriert|ignorieren|weggelassen)|brauche ich nicht"
    rf"|n'(?:est|a) pas {_PERTINENT}|ne sont pas {_PERTINENT}|(?:est|sont) (?:inutiles?|sans (?:rapport|importance|intérêt))|n'a rien à voir"
    r"|peut être ignorée?"
    rf"|no (?:es|son) {_RELEVANTE}|(?:es|son) irrelevantes?|no importan?|no tienen? (?:nada que ver|relación|importancia)|se puede(?:n)? ignorar)",
    re.I,
)
_LOOK = r"(?:look(?:ing)? at|check(?:ing)?|examin(?:e|ing)|consider(?:ing)?|inspect(?:ing)?|us(?:e|ing)|focus(?:ing)? on|need(?:ing)?)"
_DISMISSED_BEFORE = re.compile(
    r"(?:\b(?:ignor(?:e|es|ed|ing)|skip(?:s|ped|ping)?|disregard(?:s|ed|ing)?|exclud(?:e|es|ed|ing)|except(?:ing)?(?: for)?|instead of|rather than|"
    r"dismiss(?:es|ed|ing)?|rul(?:e|es|ed|ing) out|apart from|other than|aside from|with the exception of|discard(?:s|ed|ing)?|omit(?:s|ted|ting)?|"
    r"discount(?:s|ed|ing)?|eliminat(?:e|es|ed|ing)|le(?:ave|aves|ft|aving) (?:out|aside)|set(?:s|ting)? aside|"
    r"(?:all|any|every)(?:thing|one|[ ]\w+)? but|never mind|"
    rf"forget(?:ting)?(?: about)?|(?P<without>without)(?: (?:even )?{_LOOK})?)"
    r"|\b(?:neither|nor)(?: (?:of|is|are|does|do|was|were))?(?: (?:in|at|on|from))?"
    rf"|\bno need (?:for|to {_LOOK})|(?:n't|\bnot) (?:need|use|consider)(?: to {_LOOK})?"
    r"|[,(]\s*(?:and |but )?not(?: (?:in|at|on|from|to))?|(?:忽略|不考虑|不看|除了|排除|跳过)(?:了|掉)?"
    r"|\b(?:ignoriere|außer|ausser|weder|noch|abgesehen von)(?: in)?|\b(?:sauf|excepté|hormis|j'ignore|ni|excepto|salvo|ignoro)(?: (?:dans|en))?)"
    r"\s*(?<![A-Za-zß])(?:(?:the|either|der|die|das|dem|den|la|le|les|el|los|las|l')\s*)*[*_`\"'(\[]*$",
    re.I,
)
_HARDLY = (
    r"\b(?:can(?:no|')t|can not|could(?: not|n't)|(?:should|must|would|do|did|does)(?: not|n't)|never|impossible|hard to|unable|unclear|difficult|"
    r"not possible|won't|will not)\b"
)
_STILL_NEEDED = re.compile(_HARDLY, re.I)
"""Words that turn a dismissal round: ``without R2 I could not tell``."""
_NOT_AT_ALL = re.compile(rf"{_HARDLY}(?:\s+\w+)?\s*$", re.I)
"""The same right before a verb: ``I cannot ignore R4``."""
_NOT = re.compile(r"(?:\bnot|n't)(?!\s+only)(?P<place>\s+(?:in|at|on|from|to|inside|by))?\s+(?:the\s+)?[*_`\"'(\[]*$", re.I)
_NOT_ABROAD = re.compile(
    r"(?:\b(?:nicht|pas|no(?: est[áa]n?)?)(?:\s+(?:in|im|dans|en))?\s+(?:(?:der|dem|la|le|el)\s+)?|(?:不是|不在)\s?)[*_`\"'(\[]*$", re.I
)
_BUT_ABROAD = re.compile(r"[*_`\"')\]]*[中里]?,?\s*(?:(?:sondern|mais|sino)\b|而)", re.I)
_BUT = re.compile(r"[*_`\"')\]]*,?\s*but\b|[*_`\"')\]]*,\s+(?:it is|it's|rather|instead)\b", re.I)
_PUT = re.compile(
    r"\b(?:set|put|le(?:ave|aving|ft)|rul(?:e|ed|ing)|push|cast|cross(?:ed|ing)?|strik(?:e|ing)|struck|tak(?:e|ing))\s+(?:the\s+)?[*_`\"'(\[]*$", re.I
)
_ASIDE = re.compile(r"[*_`\"')\]]*\s+(?:aside|out|off the (?:list|table))\b", re.I)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(?P<tag>s|del|strike)>[^<>\n]{1,200}</(?P=tag)>|\\(?:sout|x?cancel|bcancel|st)\{[^{}\n]{1,200}\}", re.I)


@dataclass(frozen=True)
class Mentions:
    """The boxes that a text refers to.

    Attributes:
        used: numbers within 1..count.
        invented: numbers outside 1..count: boxes that do not exist.
        negated: the part of ``used`` that is named only to be dismissed ("ignore R3", "R3 is not relevant").
    """

    used: frozenset[int]
    invented: frozenset[int]
    negated: frozenset[int]


def regions(text: str, count: int) -> Mentions:
    """Return φ of a text: a step, or a whole chain (paper, 4.1).

    Args:
        text: what a model wrote.
        count: number of boxes shown, numbered from 1; 0 where none is.

    >>> regions("R1 and R3 show chairs; region 9 does not exist.", 4)
    Mentions(used=frozenset({1, 3}), invented=frozenset({9}), negated=frozenset())
    """
    plain = written_out(INVISIBLE.sub("", same_length(text)))
    named_groups = groups(plain, count)
    struck = [match.span() for match in _STRUCK.finditer(plain)]
    named = {number for group in named_groups for number in group.numbers}
    kept: set[int] = set()
    for group in named_groups:
        if not kept.issuperset(group.numbers) and not _dismissed(plain, group, struck):
            kept.update(group.numbers)
    used = frozenset(number for number in named if 1 <= number <= count)
    return Mentions(used, frozenset(named) - used, used - kept)


def regions_of_steps(steps: Iterable[str], count: int) -> Mentions:
    """Return the union of φ over the steps of a chain (paper, 4.1, R̂); a box is negated where every step that names it dismisses it."""
    mentions = [regions(step, count) for step in steps]
    used = frozenset(number for one in mentions for number in one.used)
    kept = {number for one in mentions for number in one.used - one.negated}
    return Mentions(used, frozenset(number for one in mentions for number in one.invented), used - kept)


def own_steps(steps: Sequence[str], prompt: str, count: int) -> list[str]:
    """Return the steps without those that repeat a sentence of the prompt.

    "On the image, 4 regions are outlined in red and numbered `R1` to `R4`" says nothing about what the model looked at, and would use every box. A
    step repeats a sentence of the prompt where it adds no word to it but those of telling ("the image has", "the user says that"), keeps most of its
    pairs of neighbouring words, and names the same boxes. A question is repeated by a question only: the same words in another order are its answer.

    Args:
        steps: of a response (``response.parse``).
        prompt: what the model was asked, as text.
        count: number of boxes shown.
    """
    asked = [(sentence.endswith("?"), _word_list(sentence), regions(sentence, count)) for sentence in sentences(_MARK.sub("", prompt))]
    said = [
        (question, frozenset(words), frozenset(itertools.pairwise(words)), boxes) for question, words, boxes in asked if boxes.used or boxes.invented
    ]
    longest = max((len(words) for _, words, _ in asked), default=0) + _ADDED
    out = []
    for step in steps:
        words = _word_list(step) if len(step) < _LONG_STEP else []
        if not (_FEW_WORDS <= len(words) <= longest and any(_repeats(step, words, *one, count) for one in said)):
            out.append(step)
    return out


_MARK = re.compile(r"\*\*\w[\w ]{0,20}\*\*:")
"""What marks the question in a prompt; ``sentences`` drops a line that begins so."""
_FEW_WORDS = 6
"""A shorter step is the model's own: "R1 to R4" may be its answer."""
_ADDED = 12
"""How many words of telling a repeated sentence may have before it."""
_LONG_STEP = 2000
_TELLING = re.compile(
    r"an?|the|this|that|these|there|here|in|on|of|at|to|with|is|are|was|were|ha[sd]|have|which|they|it|we|i|you|see|shown|so|ok|okay|let|me|first|well|users?|"
    r"says?|said|prompt|questions?|ask(?:s|ed)|states?|tells?|told|given|according|all|as|also|both|my|your|task|instructions?|now|following"
)


def _word_list(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", same_length(text).casefold())


def _repeats(
    step: str, words: list[str], question: bool, known: frozenset[str], pairs: frozenset[tuple[str, str]], boxes: Mentions, count: int
) -> bool:
    """Tell whether a step repeats one sentence of the prompt.

    Args:
        step: the step.
        words: its words.
        question: whether the sentence is a question.
        known: the sentence's words.
        pairs: its neighbouring words.
        boxes: the boxes that the sentence names.
        count: number of boxes shown.
    """
    if any(word not in known and not _TELLING.fullmatch(word) for word in words) or (question and not step.rstrip("*_\"' ").endswith("?")):
        return False
    own = [pair for pair in itertools.pairwise(words) if not all(map(_TELLING.fullmatch, pair))]
    kept = sum(pair in pairs for pair in own)
    named = regions(step, count)
    return kept >= _KEPT * len(own) and (named.used, named.invented) == (boxes.used, boxes.invented)


_KEPT = 0.6
"""The share of neighbouring words that a repeated sentence keeps."""


def _dismissed(text: str, group: Group, struck: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a group is named only to be ruled out.

    Args:
        text: the text.
        group: a group of it.
        struck: from where to where text is struck out, in order.
    """
    last = bisect.bisect(struck, (group.start, len(text))) - 1
    if last >= 0 and group.end <= struck[last][1]:
        return True
    clause = re.split(r"[.!?;\n。！？；]", text[max(0, group.start - _NEAR) : group.start])[-1]
    after = re.split(r"[.!?;\n。！？；]", text[group.end : group.end + _NEAR], maxsplit=1)[0]
    before = _DISMISSED_BEFORE.search(clause)
    if before and not _NOT_AT_ALL.search(clause[: before.start()]):
        return not (before["without"] and _STILL_NEEDED.search(clause + after))
    if denied := _NOT.search(clause):
        return bool(_BUT.match(after)) or not (denied["place"] or after.strip("*_`\"')] ,"))
    if _NOT_ABROAD.search(clause) and _BUT_ABROAD.match(after):
        return True
    return bool(_DISMISSED_AFTER.match(text[group.end : group.end + 2 * _NEAR])) or bool(_PUT.search(clause) and _ASIDE.match(after))


def renumber(text: str, numbers: Mapping[int, int], count: int | None = None) -> str:
    """Return the text with every box under its new number; a box without a new number becomes "another region".

    Numbers are replaced where they stand. Ranges, and lists with a box that is not shown, are written out.

    Args:
        text: a step or a correction, boxes by their place in the item's list.
        numbers: old number -> new number, for the boxes that are shown (``items.ShownBoxes.numbers``).
        count: number of boxes in the item's list; default: the largest old number. Give it where some boxes are not shown: it decides whether a loose
            form ("area 5", "the fifth box") names a box.

    >>> renumber("Regions 1-3 show dogs, R2 a big one.", {1: 2, 2: 1})
    'Regions R2, R1 and another region show dogs, R1 a big one.'
    """
    out, done, plain = [], 0, text
    listed = max(numbers, default=0) if count is None else count
    text = written_out(text)  # else the numbers of a table or list would stay
    for group in groups(text, listed):
        if all(numbers.get(number) == number for number in group.numbers) and not (group.of_how_many and len(numbers) != listed):
            continue
        start, new = _renumbered(text, group, numbers)
        out += [text[done : max(done, start)], new]
        done = group.end
    return "".join([*out, text[done:]]) if done else plain


def _renumbered(text: str, group: Group, numbers: Mapping[int, int]) -> tuple[int, str]:
    """Return where the new text of a group begins, and the text."""
    if (not group.rigid or group.of_how_many) and all(number in numbers for number in group.numbers):
        new = _exchanged(text, group, numbers)
        return group.start, re.sub(r"\d+$", str(len(numbers)), new) if group.of_how_many else new  # "box 2 of 5"
    kept = [f"R{numbers[number]}" for number in group.numbers if number in numbers]
    start, alone = group.start, not kept
    if len(kept) < len(group.numbers):
        kept.append(ANOTHER)
    joint = " or " if re.search(r"\bor\b", text[group.start : group.end]) else " and "
    new = joint.join(filter(None, [", ".join(kept[:-1]), kept[-1]]))
    ordinal = group.items[0].kind in ("ordinal", "sign")
    head = (
        re.search(rf"{WORD}$", text[group.start : group.end], re.I)
        if ordinal
        else re.match(r"(?:[A-Za-z]{3,}[ -]?)*", text[group.start : group.items[0].start])
    )
    if not alone and head and head[0]:
        return start, f"{head[0].rstrip(' -')} {new}"  # keep the head, as in "regions R2 and R1"
    if article := re.search(r"\b(?:the|that|this)\s+$" if alone else r"\bthe\s+$", text[max(0, start - 20) : start], re.I):
        start = max(0, start - 20) + article.start()  # not "the another region"
    before = text[max(0, start - 20) : start]
    begins = not before.strip("*_`\"'-# \t\n") or re.search(r"[.!?:]\s+$|\n[\s*_#-]*$", before)
    return start, new[0].upper() + new[1:] if alone and begins else new


def _exchanged(text: str, group: Group, numbers: Mapping[int, int]) -> str:
    out, done = [], group.start
    for item in group.items:
        out += [text[done : item.start], _written(text[item.start : item.end], item, numbers[item.numbers[0]])]
        done = item.end
    return "".join([*out, text[done : group.end]])


def _written(old: str, item: Item, number: int) -> str:
    """Write a number in the form of the old one: digits, word or ordinal."""
    if item.kind == "digits":
        return str(number)
    words = WORDS if item.kind == "word" else ORDINALS
    if old[0].isdigit() or number >= len(words):
        return str(number) if item.kind == "word" else f"{number}{_suffix(number)}"
    return words[number].capitalize() if old[0].isupper() else words[number]


def _suffix(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
