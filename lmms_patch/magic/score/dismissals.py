"""Which mentions of a text only rule a box out: "R3 is irrelevant", "not R1 but R2", "box 4, no, box 5".

Pure text work.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence

from lmms_patch.magic.score.lexer import NOUN
from lmms_patch.magic.score.mentions import Group
from lmms_patch.magic.score.vocabulary import LETTER, pattern, pieces, words

_NEAR = 120
"""How many characters around a mention can dismiss it."""
_LINE = 2000
"""How far before a mention the start of its line is looked for."""


def _filled(*entries: str) -> str:
    """Return the pieces of some entries, with references to further entries (``{be}``) filled in."""
    text = pieces(*entries)
    while (filled := re.sub(r"\{([a-z_]+)\}", lambda match: pieces(match[1]), text)) != text:
        text = filled
    return text


_GLUE = rf"\s*(?:(?:{pieces('the', 'adjectives', 'both')}|either|any of)\s*)*[*_`\"'(\[]*"
_OF = r"(?:(?:the )?(?:contents?|objects?|things?|rest|areas?) (?:of|in|inside|within))?"
_STARTS = rf"(?:(?<![{LETTER}])|(?=n't\b))"
_BEFORE = pattern(
    rf"{_STARTS}(?:{_filled('ignoring')}|(?P<without>{_filled('without')})|(?P<apart>{pieces('except')}))(?![{LETTER}])\s*{_OF}{_GLUE}$",
)
_KIND = pattern(
    rf"{words('ignored_kinds')}[ _]*(?:{NOUN})?[\"'*_`]*\s*[:=>]?\s*[\[(\"'*_`]*(?:{pieces('the', 'adjectives')}\s*)*$"
)
_KIND_OF = pattern(words("ignored_kinds"))
_NAMED = r"(?:'s|,(?= (?:the|an?|on|in|at|with|showing|which)\b)| (?:on|at|in|near|around|showing)(?= ))[^.,;:!?\n]{1,40}?(?:,|(?=\s))"
_AFTER = pattern(
    rf"(?![\]}}\s]*,\s*[\"'][^\"':]{{0,30}}{pieces('ignored_kinds')})"
    rf"[*_`\"')\]}}>]*(?:\s*\([^()]*\))?(?:{_NAMED})?[,:]?\s*(?:(?:[-=]>?|[→⇒])\s*)?[(\[\"']?\s*(?:(?:both|all|also|probably|likely|clearly|just|simply|therefore|thus|here)\s+)*"
    rf"{_filled('ignored')}",
)
_HARDLY = (
    r"\b(?:can(?:no|')t|can not|could(?: not|n't)|(?:should|must|would|do|did|does)(?: not|n't)|never|impossible|hard to|unable|unclear|difficult|"
    r"not possible|won't|will not)\b"
)
_STILL_NEEDED = pattern(rf"{_HARDLY}|{words('impossible')}")
"""Words that turn a dismissal round: ``without R2 I could not tell``."""
_NOT_AT_ALL = pattern(rf"(?:{_HARDLY}|{_STARTS}{pieces('never')}(?![{LETTER}]))(?:[ ]+\w+){{0,2}}\s*$")
"""The same right before a verb: ``I cannot ignore R4``."""
_AFTER_ALL = pattern(
    rf"{pieces('never_behind')}|[\s*_`\"')]*\?"
    rf"|[^.,;!?\n。]{{0,25}}[,;.—-]?\s*{words('yet')}\s+(?:\w+\s+)?(?!{words('joins', 'but')})(?:its|{words('they')})(?=\W+\w)"
)
"""What turns it round behind: "R4 seems irrelevant, but it", "Is R4 irrelevant?"."""
_NOT = pattern(rf"{_STARTS}{pieces('not')}(?![{LETTER}]){_GLUE}$")
_COMMA_NOT = pattern(rf"[,(—-]\s*(?:(?:but|{pieces('joins', 'but')})\s+)?{pieces('not')}{_GLUE}$")
_BUT = pattern(rf"[*_`\"')\]中里]*(?: after all)?,?\s*{pieces('but')}(?![{LETTER}])")
_GLOSS = (
    rf"(?:(?:\s+(?!(?:{pieces('joins', 'but', 'verbs', 'yet')}|it|them|this|since|because)(?![{LETTER}]))[^\s.,;:!?(){{}}]+){{0,7}}?"
    rf"(?:\s*[([]|\s+{pieces('within', 'too')}(?![{LETTER}])))?{_GLUE}$"
)
"""What stands between a verb and a box where the verb's object lies in the box: ``I ignore the old lamp in R4``."""
_DROPS = pattern(rf"{_STARTS}{_filled('drops')}{_GLOSS}")
_PUT = pattern(rf"{words('put')}{_GLOSS}")
_ASIDE = pattern(rf"[*_`\"')\]]*\s+{pieces('aside')}(?![{LETTER}])")
_STRUCK = pattern(
    r"~~[^~\n]{1,200}~~|<(?P<tag>s|del|strike)>[^<>\n]{1,200}</(?P=tag)>|\\(?:sout|x?cancel|bcancel|st)\{[^{}\n]{1,200}\}"
)
_FILLER = rf"(?:(?:{pieces('filler')})[\s,:*`\"']*){{0,4}}[*_`\"'(\[]*"
_BARE_NO = r"(?!(?:no|non|não|nein|não|لا|nicht)\s)"
_INSTEAD = pattern(
    rf"(?!\s*:)(?P<said>[^\n]*?)[\s,.;:!?…()*\"'—-]*(?<![{LETTER}])(?:(?P<clear>{_BARE_NO}{pieces('instead')})|{pieces('instead_weak')})(?![{LETTER}])"
    rf"[\s,.;:!?…)—-]*(?:{pieces('instead', 'instead_weak')}[\s,.;:!…—-]+)?{_FILLER}",
)
_WRONG = pattern(
    rf"(?<![{LETTER}]){pieces('wrong')}(?![{LETTER}])"
    rf"|(?:[.!?…。！？\n]|[ ]-)[\s\"'*_`()-]*(?:{pieces('instead_weak')}[\s,.!…]+)?{pieces('wrong_start')}(?![{LETTER}])"
)
_THOUGHT = pattern(rf"{words('thought')}[^.!?\n]*$")
_TURNED = pattern(words("turned"))
_SKIP_IT = pattern(rf"(?<![{LETTER}]){_filled('skip_it')}(?![{LETTER}])")
_THEY = pattern(
    rf"(?<![{LETTER}])(?:{pieces('they')})\s*(?:(?:both|all|also|clearly|just|simply|therefore|thus)\s+)*(?:{_filled('ignored')})"
    r"(?! (?:whether|if|how|that|to)\b)"
)
_IRRELEVANT = pattern(
    rf"(?:^[^.!?;。\n{{}}]{{0,90}}?|[.!?;。…\n][\s*_`\"'-]*(?:(?:{pieces('they')}|{pieces('the')}\s+(?P<thing>\w+))(?![{LETTER}])[^.!?;。\n{{}}]{{0,60}}?)?){_STARTS}"
    rf"(?P<said>{_filled('irrelevant')})"
)
_OWN = pattern(
    rf"\w*[ \t\"'*_`>]*(?:[:=(\[{{]\s*)*[\"'*_`]*(?:(?:{pieces('verbs', 'the', 'signs', 'adjectives', 'ignored_kinds')}|{NOUN})(?![{LETTER}])\s*)*[\"'*_`(:]*\s*$"
)
"""What stands between a word that dismisses and the box behind that it dismisses: ``irrelevant is R4``."""
_LABEL = pattern(
    rf"^[\s\"'*_`|•-]*(?:\w+ )?{pieces('ignored_kinds')}[ _]*(?:{NOUN})?[\"'*_`]*\s*[:=](?!.*{words('relevant', 'used')}\W{{0,3}}[:=])[^\]}}]*$"
)
_LISTED = pattern(
    rf"(?!.*{words('relevant', 'used')})\s*(?:\([^()\n]{{1,60}}\),?|,?)\s*(?:(?:{pieces('joins')}|/|&)\s*(?:{pieces('the')}\s+(?:\w+\s+){{0,2}}{pieces('within')}\s+)?{_GLUE})?"
)
"""What stands between two boxes of which the same is said: ``R1 (a lamp) and the cup in R2``."""
_ENDED = pattern(r"[\s*_`\"']*(?:[.,;:()\n]|$)")
_SO_IS = pattern(
    rf".*(?:{words('none', 'ignoring')}|\bso) (?:is|are|do|does|did|can|was|were|will)(?:\s+\w+){{0,4}}\s*"
)
_SAID = pattern(rf"(?<![{LETTER}]){pieces('said')}{_GLUE}$")
_MAYBE = pattern(r"\s*(?:could|might|may|must|would|should) be\b")
_BUT_ANOTHER = pattern(rf",\s*{pieces('but')}(?:\s*{words('within')})?{_GLUE}$")
_EARLIER = pattern(rf"{words('earlier')}[^.!?\n]*$")
_TURNED_TO = pattern(words("turned_to"))
_DELIMITED = pattern(
    r"\W*[.,;:!?)—]|\s*(?:seemed|looked|appeared|(?:was|were) (?:the|what|supposed)|above|earlier|before|because|since|as|for)\b"
)
_BACK = pattern(rf"{words('instead', 'instead_weak', 'wrong_start')}|{pieces('wrong')}")
_SUBJECT = pattern(rf"(?:[.,;:!?…—。、]|[ ]-|{words('yet')})[^.,;:!?…—。、]{{0,14}}$")
_NEITHER, _CAN_GO = pattern("neither|nor"), pattern(rf"\bbe {_filled('gone')}|\b{_filled('useless')}")
_DOUBT = pattern(rf"{words('doubt')}{_GLUE}$")
_OF_USE = pattern(rf"[^.,;:!?\n]{{0,40}}?{words('of_use', 'asked')}")
"""What stands around a box that is said to be of no use: ``nothing in R4 helps``, ``I don't think R4 is relevant``."""
_WHETHER = pattern(rf"{_STARTS}{pieces('whether', 'doubt')}(?![{LETTER}]){_GLUE}$")
_SINGLE = pattern(rf"\s*{words('single')}")
_ONLY = pattern(rf"\s*{words('verbs', 'shows')}?\s*{words('only')}")
_CROSS, _CHECK = "❌✗✘🚫❎✖👎", "✅✓✔☑👍"
_MARK = pattern(f"[{_CROSS}{_CHECK}]")
_MARKED = pattern(rf"[ \t>|*•–\-\[(]{{0,20}}(?:\d+[.)] )?{_MARK.pattern}")
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
_ITEM = pattern(r"\s*(?:[-*•–]|\d+[.)]|\|)[^\n]{0,20}$")
"""What stands before the box that a line of a list or table is about."""
_JUDGED = pattern(
    rf"[^\n]*?[|,:;(—-][\s*_`]*(?:{words('denies', 'none')}[,;:\s]+)?"
    rf"(?:{_filled('useless', 'ignored')}|{words('ignored_kinds')}|(?:not|n't) {_filled('useful')})[\s*_`.)|]*(?:\n|$)"
)
"""How such a line ends that dismisses its box: ``| Box 2 | fence | no, irrelevant |``, ``- Box 5: a can (not relevant)``."""


def dismissed(text: str, groups: Sequence[Group]) -> list[bool]:
    """Return for each group of a text whether the group is named only to be ruled out there."""
    struck = [match.span() for match in _STRUCK.finditer(text)]
    found = [_ruled_out(text, groups, place, struck) for place in range(len(groups))]
    for place in range(len(groups) - 2, -1, -1):
        this, following = groups[place], groups[place + 1]
        between = text[this.end : following.start]
        if found[place] != found[place + 1] and len(between) < _NEAR:
            alike = _LISTED.fullmatch(between) and between.strip(" ,\n")
            found[place] |= bool(
                alike and not _SINGLE.match(text, following.end) and not _before(text, groups, place + 1)
            )
            goes_on = alike and _before(text, groups, place) and _ENDED.match(text, following.end)
            found[place + 1] |= bool(found[place] and (goes_on or _SO_IS.fullmatch(between)))
    last: dict[tuple[int, ...], bool] = {}
    for place, group in enumerate(groups):
        found[place] |= bool(last.get(group.numbers) and _ONLY.match(text, group.end))
        last[group.numbers] = found[place]
    return found


def excepted(text: str, group: Group) -> bool:
    """Return whether a text speaks of all boxes but those of a group: "all boxes except R2"."""
    clause = _clause_before(text, group)
    apart, end = _BEFORE.search(clause), group.end
    every = apart and apart["apart"] and (_ALL.search(clause[: apart.end("apart")]) or _ALL_BEHIND.match(text, end))
    return bool(_APART_BEHIND.match(text, end) or (every and not _all_dismissed(text, group, clause)))


def _clause_before(text: str, group: Group) -> str:
    return _STOP.split(text[max(0, group.start - _NEAR) : group.start])[-1]


def _all_dismissed(text: str, group: Group, clause: str) -> bool:
    """Return whether all boxes except the named are dismissed: "none of the boxes matters except R2"."""
    return bool(_NONE.search(clause[: max(0, len(clause) - 6)]) or _AFTER.match(text, group.end))


def _ruled_out(text: str, groups: Sequence[Group], place: int, struck: Sequence[tuple[int, int]]) -> bool:
    """Return whether the group at a place is ruled out.

    Args:
        text: the text.
        groups: its groups.
        place: of the group.
        struck: from where to where text is struck out, in order.
    """
    group = groups[place]
    last = bisect.bisect(struck, (group.start, len(text))) - 1
    if last >= 0 and group.end <= struck[last][1]:
        return True
    clause, rest = _clause_before(text, group), text[group.end : group.end + 2 * _NEAR]
    following = groups[place + 1] if place + 1 < len(groups) else None
    near = min(following.start if following else len(text), group.end + _NEAR)
    between = text[group.end : near]
    if _ITEM.match(clause) and _JUDGED.match(between):
        return True
    after = _STOP.split(rest[:_NEAR], maxsplit=1)[0]
    before = _BEFORE.search(clause)
    if before:
        if _NOT_AT_ALL.search(clause[: before.start()]) or (_NEITHER.match(before[0]) and _CAN_GO.search(after)):
            return False
        if before["apart"] and _all_dismissed(text, group, clause):
            return False
        return not (before["without"] and _STILL_NEEDED.search(clause + after))
    if _COMMA_NOT.search(clause) or _KIND.search(clause) or _KIND_OF.search(text[group.start : group.items[0].start]):
        return True
    if _LABEL.search(clause) or _before(text, groups, place):
        return True
    if denied := _NOT.search(clause):
        return bool(_BUT.match(after) or (following and _BUT_ANOTHER.search(between))) or (
            denied[0].rstrip().lower().endswith(("not", "n't")) and not after.strip("*_`\"')] ,")
        )
    said = _AFTER.match(rest)
    if said:
        return not (_AFTER_ALL.match(rest, said.end()) or _WHETHER.search(clause))
    if _DOUBT.search(clause) and _OF_USE.match(between):
        return True
    return (
        bool(_PUT.search(clause) and _ASIDE.match(after))
        or _taken_back(clause, between, group, following)
        or _mistaken(text, groups, place)
        or (place > 0 and _mistaken(text, groups, place - 1))
        or _skipped(clause, between, following is not None and near == following.start)
        or _crossed(text, groups, place)
    )


def _before(text: str, groups: Sequence[Group], place: int) -> bool:
    """Return whether the words before a group, behind the group before, dismiss what lies in it."""
    clause = _clause_before(text, groups[place])
    if place and (near := groups[place].start - groups[place - 1].end) < len(clause):
        clause = "x" + clause[len(clause) - near :]
    said = _DROPS.search(clause)
    return bool(said and not _NOT_AT_ALL.search(clause[: said.start()]))


def _taken_back(clause: str, between: str, group: Group, following: Group | None) -> bool:
    """Return whether a speaker replaces a named box by another box: "R1, no, R2", "I first thought R1, but R2"."""
    single = _DELIMITED.match(between) or not _STOP.search(between)
    if _THOUGHT.search(clause) and _TURNED.search(between) and (single or following is None):
        return True
    if following is None or following.numbers == group.numbers or following.start > group.end + _NEAR:
        return False
    if _EARLIER.search(clause) and _TURNED_TO.search(between) and single:
        return True
    instead = _INSTEAD.fullmatch(between)
    return bool(_WRONG.search(between) or (instead and (instead["clear"] or not instead["said"].strip(" *_`\"')"))))


def _mistaken(text: str, groups: Sequence[Group], place: int) -> bool:
    """Return whether a box is looked at again and given up for another: "The cup is in R1. Wait, R1 is a jar, it is in R2"."""
    if place + 2 >= len(groups):
        return False
    first, again, other = groups[place : place + 3]
    between, clause = text[first.end : again.start], _clause_before(text, first)
    return bool(
        first.numbers == again.numbers != other.numbers
        and other.start < again.end + _NEAR > again.start + len(between)
        and (_SAID.search(clause) or _MAYBE.match(between))
        and _SUBJECT.search(between)
        and (_BACK.search(between) or (_EARLIER.search(clause) and _TURNED_TO.search(between)))
    )


def _skipped(clause: str, between: str, followed: bool) -> bool:
    """Return whether the text between a group and the next one dismisses the group: "R3 is a lamp.

    I'll skip it".
    """
    for said in (_SKIP_IT.search(between), _THEY.search(between), _IRRELEVANT.search(between)):
        parts = said.groupdict() if said else {}
        if (
            said
            and (parts.get("thing") or "") in clause + between[: said.start()]
            and not _NOT_AT_ALL.search(between[: said.end() - len(parts.get("said", said[0]))])
            and not _AFTER_ALL.match(between, said.end())
            and not (followed and _OWN.match(between, said.end()))
        ):
            return True
    return False


def _crossed(text: str, groups: Sequence[Group], place: int) -> bool:
    """Return whether a cross marks a group: in front where the line begins with a mark, else behind."""
    group, last = groups[place], groups[place - 1].end if place else 0
    following = groups[place + 1].start if place + 1 < len(groups) else len(text)
    line = text.rfind("\n", max(0, group.start - _LINE), group.start) + 1
    if _MARKED.match(text, line):
        mark = _MARK.search(text, max(line, last), group.start)
    else:
        mark = _MARK.search(text[group.end : min(following, group.end + _NEAR)].split("\n")[0])
    return mark is not None and mark[0] in _CROSS
