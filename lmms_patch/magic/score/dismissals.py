"""Which mentions of a text only rule a box out: "R3 is irrelevant", "not R1 but R2", "box 4, no, box 5".

Pure text work.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from lmms_patch.magic.score.lexer import NOUN
from lmms_patch.magic.score.numbers import Group
from lmms_patch.magic.score.vocabulary import LETTER, pieces, words

_NEAR = 120
"""How many characters around a mention can dismiss it."""


def pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression in small letters; a flag for letters of both cases would make it several times slower."""
    return re.compile(re.sub(r"(?<!\\)(?<!\(\?)[^\W\d_]", lambda one: one[0].lower(), text))


def _filled(*entries: str) -> str:
    """Return the pieces of some entries, with references to further entries (``{be}``) filled in."""
    text = pieces(*entries)
    # until nothing changes, since what is filled in may refer to further entries
    while (filled := re.sub(r"\{([a-z_]+)\}", lambda match: pieces(match[1]), text)) != text:
        text = filled
    return text


_GLUE = rf"\s*(?:(?:{pieces('the', 'adjectives', 'both')}|either|any of)\s*)*[*_`\"'(\[]*"
_STARTS = rf"(?:(?<![{LETTER}])|(?=n't\b))"
_BEHIND = rf"(?![{LETTER}])\s*(?:(?:the )?(?:contents?|objects?|things?|rest|areas?) (?:of|in|inside|within))?{_GLUE}$"
_APART = pattern(rf"{_STARTS}(?P<apart>{pieces('except')}){_BEHIND}")
_KIND_OF = pattern(words("ignored_kinds"))
_AFTER = (
    rf"(?![\]}}\s]*,\s*[\"'][^\"':]{{0,30}}{pieces('ignored_kinds')})"
    rf"[*_`\"')\]}}>]*(?:\s*\([^()\x00]*\))?"
    rf"(?:(?:'s|,(?= (?:the|an?|on|in|at|with|showing|which)\b)| (?:on|at|in|near|around|showing)(?= ))[^.,;:!?\n\x00\x01]{{1,40}}?(?:,|(?=\s)))?"
    rf"[,:]?\s*+(?:(?:[-=]>?|[→⇒])\s*+)?[(\[\"']?\s*+(?:(?:both|all|also|probably|likely|clearly|just|simply|therefore|thus|here)\s+)*"
    rf"{_filled('ignored')}"
)
_AFTER_IT = pattern(_AFTER)
_HARDLY = (
    r"\b(?:can(?:no|')t|can not|could(?: not|n't)|(?:should|must|would|do|did|does)(?: not|n't)|never|impossible|hard to|unable|unclear|difficult|"
    r"not possible|won't|will not)\b"
)
_STILL_NEEDED = rf"[\s\S]*(?:{_HARDLY}|{words('impossible')})"
"""Words that turn a dismissal round: ``without R2 I could not tell``."""
_NOT_AT_ALL = pattern(rf"(?:{_HARDLY}|{_STARTS}{pieces('never')}(?![{LETTER}]))(?:[ ]+\w+){{0,2}}\s*$")
"""The same right before a verb: ``I cannot ignore R4``."""
_AFTER_ALL = pattern(
    rf"{pieces('never_behind')}|[\s*_`\"')]*\?"
    rf"|[^.,;!?\n。]{{0,25}}[,;.—-]?\s*{words('yet')}\s+(?:\w+\s+)?(?!{words('joins', 'but')})(?:its|{words('they')})(?=\W+\w)"
)
"""What turns it round behind: "R4 seems irrelevant, but it", "Is R4 irrelevant?"."""
_GLOSS = (
    rf"(?:(?:\s+(?!(?:{pieces('joins', 'but', 'verbs', 'yet')}|it|them|this|since|because)(?![{LETTER}]))[^\s.,;:!?(){{}}\d]+){{0,7}}?"
    rf"(?:\s*[([]|\s+{pieces('within', 'too')}(?![{LETTER}])))?{_GLUE}$"
)
"""What stands between a verb and a box where the verb's object lies in the box: ``I ignore the old lamp in R4``."""
_FILLER = rf"(?:(?:{pieces('filler')})[\s,:*`\"']*+){{0,4}}[*_`\"'(\[]*"
_WRONG = (
    rf"(?:(?<![{LETTER}]){pieces('wrong')}(?![{LETTER}])"
    rf"|(?:[.!?…。！？\n]|[ ]-)[\s\"'*_`()-]*(?:{pieces('instead_weak')}[\s,.!…]+)?{pieces('wrong_start')}(?![{LETTER}]))"
)
_IRRELEVANT = (
    rf"(?:^[^.!?;。\n{{}}]{{0,90}}?|[.!?;。…\n][\s*_`\"'-]*(?:(?:{pieces('they')}|{pieces('the')}\s+(?P<thing>\w+))(?![{LETTER}])[^.!?;。\n{{}}]{{0,60}}?)?){_STARTS}(?=[^\s\x00-\x03])"
    rf"(?P<said>{_filled('irrelevant')})"
)
_THEY = (
    rf"(?<![{LETTER}])(?=[^\s\x00-\x03])(?P<said>{_filled('skip_it')}(?![{LETTER}])"
    rf"|(?:{pieces('they')})\s*(?:(?:both|all|also|clearly|just|simply|therefore|thus)\s+)*(?:{_filled('ignored')})(?! (?:whether|if|how|that|to)\b))"
)
_OWN = pattern(
    rf"\w*[ \t\"'*_`>]*(?:[:=(\[{{]\s*)*[\"'*_`]*"
    rf"(?:(?:{pieces('verbs', 'the', 'signs', 'adjectives', 'ignored_kinds')}|{NOUN})(?![{LETTER}])\s*)*[\"'*_`(:]*\s*[\x00\x01]"
)
"""What stands between a word that dismisses and the box behind that it dismisses: ``irrelevant is R4``."""
_SINGLE_CLAUSE = (
    rf"(?!{_AFTER})(?:(?=[^.!?;\n。]*$)|(?=\W*[.,;:!?)—]|\s*(?:seemed|looked|appeared|(?:was|were) (?:the|what|supposed)|"
    r"above|earlier|before|because|since|as|for|down)\b))[\s\S]*?"
)
_SEPARATED = rf"[\s,.;:!?…()*\"'—-]*+(?<![{LETTER}])"
_GIVEN_UP = (
    rf"[^\x01]*?(?:{words('instead', 'instead_weak', 'wrong_start')}|{pieces('wrong')})[^\x01]*(?:[.,;:!?…—。、]|[ ]-|{words('yet')})"
    r"[^.,;:!?…—。、\x01]{0,14}\x01[^\x01]*\x00"
)
"""A box is looked at again and given up: "The cup is in R1. Wait, R1 is a jar, it is in R2"."""
_CROSS, _CHECK = "❌✗✘🚫❎✖👎", "✅✓✔☑👍"
_KEPT = [
    (rf"{_STARTS}{_filled('without')}{_BEHIND}", rf"^{_STILL_NEEDED}"),
    (rf"^{_STILL_NEEDED}.*{_STARTS}{_filled('without')}{_BEHIND}", ""),
    (rf"{_STARTS}{pieces('whether', 'doubt')}(?![{LETTER}]){_GLUE}$", rf"^{_AFTER}"),
    (rf"\b(?:neither|nor){_GLUE}$", rf"\bbe {_filled('gone')}|\b{_filled('useless')}"),
]
"""What stands around a box that only seems to be dismissed."""
_FORMS = [
    (pattern(head), pattern(tail))
    for head, tail in [
        *_KEPT,
        (
            r"^\s*(?:[-*•–]|\d+[.)]|\|)[^\n]{0,20}$",
            rf"^[^\n]*?[|,:;(—-][\s*_`]*(?:{words('denies', 'none')}[,;:\s]+)?"
            rf"(?:{_filled('useless', 'ignored')}|{words('ignored_kinds')}|(?:not|n't) {_filled('useful')})[\s*_`.)|]*(?:\n|\x00|$)",
        ),
        (
            r"~~(?![\s~])[^~]*$|<(?:s|del|strike)>[^<>]*$|\\(?:sout|x?cancel|bcancel|st)\{[^{}]*$"
            rf"|{_STARTS}{_filled('ignoring', 'without')}{_BEHIND}",
            "",
        ),
        (
            r"^(?:[^\n]*\n)?[\s>|*•–\-\d.)\"'_`(\[#]*(?:\w+ \d+[:.)]\s*)?$",
            rf"^[^\n\x00]{{0,70}}?(?:[→⇒➜|,:;(—–✗✘❌…]|[-=]>|\s-|\.\.)[\s*_`\"'(\[✗✘❌]*{_filled('verdicts')}[*_`\"')\]]*[ ]*(?:[.,;(|\n\x00。、]|$)",
        ),
        (
            rf"(?<![{LETTER}]){pieces('rest')}[^.;!?\n]{{0,40}}[(\[:,—-]\s*$",
            rf"^[)\],:\s]*(?:[a-z]+\s)?{pieces('rest_not')}\s*(?:[.,;!)。]|$)",
        ),
        (
            rf"^.*[,(—-]\s*(?:(?:but|{pieces('joins', 'but')})\s+)?{pieces('not')}{_GLUE}$"
            rf"|{words('ignored_kinds')}[ _]*(?:{NOUN})?[\"'*_`]*\s*[:=>]?\s*[\[(\"'*_`]*(?:{pieces('the', 'adjectives')}\s*)*$"
            rf"|^[\s\"'*_`|•-]*(?:\w+ )?{pieces('ignored_kinds')}[ _]*(?:{NOUN})?[\"'*_`]*\s*[:=]"
            rf"(?!.*{words('relevant', 'used')}\W{{0,3}}[:=])[^\]}}]*$"
            rf"|{_STARTS}{_filled('drops')}{_GLOSS}",
            "",
        ),
        (
            rf"{_STARTS}{pieces('not')}(?![{LETTER}]){_GLUE}$",
            rf"^[^.!?\x00]*,?\s*{pieces('but')}(?:\s*{words('within')})?{_GLUE}\x00"
            rf"|^[*_`\"')\]中里]*(?: after all)?,?\s*{pieces('but')}(?![{LETTER}])",
        ),
        (r"(?:\bnot|n't)\s*[*_`\"'(\[]*$", r"^[*_`\"')\] ,]*(?:[.!?;\n]|$)"),
        ("", rf"^[^\x00\x01。.]{{0,6}}?{pieces('not_behind')}[^\x00\x01。.]{{0,14}}\x00|^{_AFTER}"),
        (rf"{words('doubt')}{_GLUE}$", rf"^[^.,;:!?\n]{{0,40}}?{words('of_use', 'asked')}"),
        (rf"{words('put')}{_GLOSS}", rf"^[*_`\"')\]]*\s+{pieces('aside')}(?![{LETTER}])"),
        (rf"^.*{words('thought')}[^.!?\n]*$", rf"^{_SINGLE_CLAUSE}{words('turned')}"),
        (
            rf"^.*{words('earlier')}[^.!?\n]*$",
            rf"^[^\x01]*?{words('turned_to')}[^\x01]{{0,14}}\x01[^\x01]*\x00|^{_SINGLE_CLAUSE}{words('turned_to')}[^\x01]*\x00",
        ),
        (
            "",
            rf"^[^\x01]*?{_WRONG}[^\x01]*\x00"
            rf"|^(?!\s*:)(?:[^\n\x01]*?{_SEPARATED}(?!(?:no|non|não|nein|não|لا|nicht)\s){pieces('instead')}|[\s*_`\"')]*{_SEPARATED}{pieces('instead_weak')})(?![{LETTER}])"
            rf"[\s,.;:!?…)—-]*(?:{pieces('instead', 'instead_weak')}[\s,.;:!…—-]+)?{_FILLER}\x00",
        ),
        (rf"(?<![{LETTER}]){pieces('said')}{_GLUE}$", rf"^{_GIVEN_UP}"),
        ("", rf"^\s*(?:could|might|may|must|would|should) be\b{_GIVEN_UP}"),
        (rf"^[ \t>|*•–\-\[(]{{0,20}}(?:[{_CROSS}{_CHECK}].*)?[{_CROSS}][^{_CROSS}{_CHECK}\d]*$", ""),
        (rf"^(?![ \t>|*•–\-\[(]{{0,20}}[{_CROSS}{_CHECK}])", rf"^[^\n\x00{_CHECK}]*?[{_CROSS}]"),
        ("", _THEY),
        ("", _IRRELEVANT),
    ]
]
"""What stands before and behind a box that is dismissed. Behind, 0 marks another box that is named, 1 the same box again."""
_ONLY = pattern(rf"\s*{words('verbs', 'shows')}?\s*{words('only')}")
_SAME = pattern(rf"[*_`\"')\]\s,:;(—–-]*(?:{words('verbs', 'the')}\s+)*{pieces('same')}\s*(?:[.,;!)。\n]|$)")
_STATED = pattern(rf"[\s*_`\"'(\[]*(?:{words('within', 'the')}\s*)*")
"""What stands in a sentence before a box that the sentence is about: "In box 4 stands a lamp"."""
_LISTED = pattern(
    rf"(?!.*(?:{words('relevant', 'used')}|[{_CROSS}{_CHECK}]))\s*(?=\S)(?:\([^()\n]{{1,60}}\),?|\)?,?)\s*"
    rf"(?:(?:{pieces('joins')}|/|&)\s*(?:{pieces('the')}\s+(?:\w+\s+){{0,2}}(?:{pieces('within')}\s+|\())?{_GLUE})?"
)
"""What stands between two boxes of which the same is said: ``R1 (a lamp) and the cup in R2``."""
_SO_IS = pattern(
    rf".*(?:{words('none', 'ignoring')}|\bso) (?:is|are|do|does|did|can|was|were|will)(?:\s+\w+){{0,4}}\s*"
)
_SINGLE = pattern(rf"\s*{words('single')}")
_ENDED = pattern(r"[\s*_`\"']*(?:[.,;:()\n]|$)")
_ALL = pattern(rf"{words('every', 'all')}[^.;!?\n]*(?:{NOUN})[^.;!?\n]*$|{words('every', 'all')}(?:thing)?\s+\S+$")
_ALL_BEHIND = pattern(
    rf"[^.;!?\n]{{0,20}}{words('every', 'all')}[^.;!?\n\d]{{0,20}}{NOUN}(?![^.;!?\n]{{0,60}}(?:n't|\bnot|{pieces('ignored_kinds')}))"
)
_APART_BEHIND = pattern(
    rf"[^.;!?\n。]{{0,8}}{pieces('except_behind')}[,、\s]*(?:其他|其余)?{words('every', 'all')}"
    rf"[^.;!?\n。]{{0,40}}{NOUN}(?![^.;!?\n。]{{0,60}}{pieces('ignored_kinds')})"
)
_NONE = pattern(rf"{words('none')}|{_filled('ignoring', 'useless', 'gone', 'skip_it')}|(?:not|n't) {_filled('useful')}")
_STOP = pattern(r"[.!?;\n。！？；।؟]")


def dismissed(text: str, groups: Sequence[Group]) -> list[bool]:
    """Return for each group of a text, in small letters, whether the group is named only to be ruled out there."""
    found = [_ruled_out(text, groups, place) for place in range(len(groups))]
    pairs = [
        (place, this, after, (text, this.end, after.start))
        for place, (this, after) in enumerate(itertools.pairwise(groups))
    ]
    # from the end: what is said behind the last box of a list holds for each box before
    for place, _, after, between in reversed(pairs):
        if (
            # words before a box (noted as a space) speak for no earlier box
            found[place + 1] > " "
            and not _STOP.search(found[place + 1])
            and _LISTED.fullmatch(*between)
            and not _SINGLE.match(text, after.end)
        ):
            found[place] = found[place] or found[place + 1]
    last: dict[tuple[int, ...], str] = {}
    for place, this, after, between in pairs:
        last[this.numbers] = found[place]
        before = last.get(after.numbers, "")
        if (
            (before and _ONLY.match(text, after.end))
            or ("\x00" in before and _STATED.fullmatch(_clause_before(text, after)))
            or ("\x01" in found[place] and this.numbers == after.numbers)
            or (found[place] and (_SAME.match(text, after.end) or _SO_IS.fullmatch(*between)))
            or (found[place] == " " and _LISTED.fullmatch(*between) and _ENDED.match(text, after.end))
        ):
            found[place + 1] = found[place + 1] or " "
    return list(map(bool, found))


def excepted(text: str, group: Group) -> bool:
    """Return whether a text speaks of all boxes but those of a group: "all boxes except R2"."""
    clause = _clause_before(text, group)
    apart, end = _APART.search(clause), group.end
    every = apart and (_ALL.search(clause[: apart.end("apart")]) or _ALL_BEHIND.match(text, end))
    return bool(_APART_BEHIND.match(text, end) or (every and not _all_dismissed(text, group, clause)))


def _clause_before(text: str, group: Group) -> str:
    return _STOP.split(text[max(0, group.start - _NEAR) : group.start])[-1]


def _all_dismissed(text: str, group: Group, clause: str) -> bool:
    """Return whether all boxes except the named are dismissed: "none of the boxes matters except R2"."""
    return bool(_NONE.search(clause[:-6]) or _AFTER_IT.match(text, group.end))


def _ruled_out(text: str, groups: Sequence[Group], place: int) -> str:
    """Return the words behind a group that rule it out; " " where the words before do, "" where nothing does."""
    group = groups[place]
    clause, between = _clause_before(text, group), _behind(text, groups, place)
    if _APART.search(clause):
        return "" if _all_dismissed(text, group, clause) else " "
    if _KIND_OF.search(text[group.start : group.items[0].start]):
        return " "
    for number, (head, tail) in enumerate(_FORMS):
        if (left := head.search(clause)) and (right := tail.search(between)):
            if (
                number < len(_KEPT)
                or _NOT_AT_ALL.search(clause[: left.start()])
                or _AFTER_ALL.match(between, right.end())
            ):
                return ""
            named = right.groupdict("")
            # "the lamp is irrelevant" speaks of this box only where a lamp was named with the box
            if not named or not (
                _OWN.match(between, right.end())
                or _NOT_AT_ALL.search(between[: right.start("said")])
                or named.get("thing", "") not in clause + between[: right.start()]
            ):
                return right[0] or " "
    return ""


def _behind(text: str, groups: Sequence[Group], place: int) -> str:
    """Return what stands behind a group: 1 marks the same box named again, 0 at the end another box."""
    said, end = "", groups[place].end
    for other in groups[place + 1 : place + 3]:
        if other.start > end + _NEAR:
            break
        said += text[end : other.start] + ("\x01" if other.numbers == groups[place].numbers else "\x00")
        end = other.end
        if said[-1] == "\x00":
            return said
    return said + text[end : end + _NEAR]
