"""The grammar of named boxes, under ``extract``: where a text names numbered boxes. Pure text work.

A *group* is one stretch of text that names boxes together: ``R2``, ``regions 1, 3 and 4``, ``R1–R3``, ``the second
box``. It is a *head* and a *list of ids* (``lists``). A head is an R with a number, a region word before a number (``box no. 2``)
or behind an ordinal (``the last box``), or a sign (``#2``); the words are those of fourteen languages
(``regions.yaml``). A list goes on through commas, "and", dashes, and glosses in brackets ("boxes 1 (plate), 3 (cup)").
``containers`` writes a region word before ids that a table, list or JSON object numbers.

Rules:

* Region words are strong (box, region), weak (area), or often another thing (frame). A number beyond the count is kept
  (the caller calls it invented) only behind a strong word or ``R``, and only with one or two digits: "room R101", "Area
  51" and "box 360" name no box. ``R 2``, ``R (2)``, ``(R)2``, ``#2``, ordinals, a bare lower-case ``r2``, circled
  digits, tags, ``R[1-3]`` and a number behind a clause are weak.
* ``#2`` is read where the words around it speak of a place ("in #2", "#2 shows"), and not of a rank or a player.
* "Object 3" is read, "item 3" is not, and neither is "object 1": it may begin a list of the text's own.
* A number behind a clause is read where the clause says where the box is, not what it holds: "the box with cups (3)"
  counts cups.
* A bare number after a comma, "and" or a dash belongs to the list unless it counts something ("in region 2, 3 people").
* A descending pair (``R3-R1``) is two boxes, no range; so is "from R1 to R3" of a gaze or path that moves, and "compare
  R1 to R3". Without a word of moving, "from R2 to R4" is a range.
* Ordinals are not read where they stand for an order of looking or a thing on a shelf ("the first region I look at",
  "the second box of cereal", "a second box").
* Of a list of ordinals ("first, second and third box") the last 41 are read.
* "All boxes" and "every box" are read where the clause says that they are used or needed: "all boxes are red" names
  none.
* An ordinal without a noun goes on from a box with an ordinal: "the second box shows a cook, the fifth a pan".
* Not read: roman numerals ("Region II"); coordinates, fractions, years, option letters, "(R) 4",
  "Pentium(R)4", "(L)1 and (R)2".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_patch.magic.score.lexer import CIRCLED, NOUN, SAME, Token, digits, place, value
from lmms_patch.magic.score.lists import read_list
from lmms_patch.magic.score.numbers import LIST_NUMBER, NEAR, Group, Item, Text
from lmms_patch.magic.score.vocabulary import ENGLISH_NTH, LETTER, pattern, pieces, words

_BRIDGE = re.compile(
    r"[msoOc]{0,5}u?[msoOc]{0,3}l?[msoOc]{0,4}v?m?:?[msoO]{0,4}/{0,2}[msoOl]{0,4}[-f]?[ht]?[msoO]{0,4}"
)
"""The kinds of tokens that may stand between a region word and its number: "box labelled no.", "boxes: [", "the relevant regions are"."""
_NO_BRIDGE = pattern(r"-\s|[)\]>]")
_LABELLED = re.compile("l?[msc]*u?v?l[ms]*|l[ms]*")
_OBJECT = pattern(r"(?!item|one|part|thing|spot|patch|ding|[eé]l[eé]ment)[^\d\n]{1,20}(?!1\b)\d")
"""A noun and number that name a box although no "labelled" stands between: "object 3". "Object 1" is none: it often begins a list of objects."""
_CHAIN = re.compile(r"N(?:(?:o[^RoOL/]{1,15}?c)?[,&][,&ht]{0,2}N){0,40}")
_BEHIND = re.compile(r"B(?:[,&]{1,2}B){0,40}")
_NTH_NOUN = re.compile(rf"({_CHAIN.pattern})j?([#b]?)[jl]{{0,4}}(?:n|(?<=N)#)")
"""Ordinals, how many, and their noun."""
_ALL_OF = re.compile(r"(?:b|ah?(#)?)[jlm]{0,4}n(?![msocO:vl]{0,6}[#R])")
_MANY = pattern(pieces("boxes", "areas", "frames"))
_PLURAL = pattern(r".*(?:s|\))")
"""A region word that is certainly not of one box."""
_STRONG = pattern(pieces("box", "boxes"))
_FRAME = pattern(pieces("frame", "frames"))
_NO_NTH = pattern(r"(?:frame|label|outline|marker|crop|square)s?")
"""What is no box behind an ordinal: "the first label"."""
_ANOTHER = pattern(r"(?:\banother|\bp\.?[ ]?o\.?|\bnumber of(?: the)?)\s+$")
_NO_NAME = pattern(r"\b(?:room|route|highway|suite|vitamin|toys)\s+$|[A-Za-z0-9]-$")
_BUS = pattern(r"[ ](?:bus|train|tram|line|route|road|engine|model)\b")
_SIDES = re.compile(r"\(L\)|\b[A-QS-Z] ?\(\d")
"""What stands beside ``(R)2`` and ``R (2)`` where the letter is one of several: left and right, the tiles of a game."""
_OTHER_FRAME = pattern(
    r"\b(?:picture|photo|window|door|video|time|key|bed|bike|wooden|glasses|price|name|shipping|food|warning|wine|address|black|war|comfort|town|"
    r"city|market|magic)[ -]+$|\bA-$",
)
"""What stands before a frame, label or square that is no region."""
_KNOWN = pattern(r"\b(?:the|this|that|each|every|an?|same|which)\s+(?:\w+\s+)?$")
_ENDS_THERE = pattern(r"\s*(?:[.,;:)]|$|(?:is|shows|contains|has|and)\b)")
_SHOWS = (
    r"(?:shows?|contains?|depicts?|highlights?|encloses?|covers?|marks?|outlines?|surrounds?|displays?|captures?|features?|holds?|includes?|"
    r"focuses|encompasses)"
)
_SAYS = rf"(?:{_SHOWS}|is|are|was|has|have|had|looks|seems|appears|lies|sits|does|can|could|might|may|gives)"
_LABELS = [
    (
        pattern(
            r"(?:\b(?:in|inside|within|at|see|check|consider|examine|of|from|and|or|both|than|with|to|but|while|whereas|then)[ ]|"
            r"\b(?:on|us(?:e|ed|ing))[ ]|,[ ]|\(|^|[.!?:;\n][ ]|\n)[*_`]{0,3}#$",
        ),
        pattern(
            r"[*_`]{0,3}(?=[ ]*(?:[.,;:!?)\]|]|$|\n|\((?!\d))|"
            rf"[ ](?:and|or|but|while|whereas|both|all|only|there|I|we|a|an|the|to|with|marked|flagged|listed|drawn|{_SAYS})\b|'s\b)",
        ),
    ),
    (pattern(r"(?:^|[.!?;。]\s|\n)(?:And |Then |Next, )?(?:number|no\.) $"), pattern(rf"[ ]{_SHOWS}\b")),
    (
        pattern(r"(?:^|[\s(\[*_`])#$"),
        pattern(rf"[*_`]{{0,3}}[ ](?!(?:box|label|frame)[ -](?:office|score|set|store|seat)){NOUN}(?![ ]?[#\d])"),
    ),
]
"""What stands before and behind a number that is a box's label: "in #2", "Number 2 shows"."""
_NO_HASH = pattern(
    r"\b(?:player|runner|rank\w*|jersey|shirt|uniform|racer|rider|horse|driver|car|seed\w*|number|wear\w*|team|bib|best\w*|(?<!the )question|option|"
    r"step|choice|(?<!the )answer|issue|episode|chapter|page|image|figure|example|"
    r"route|track|platform|apartment|room|spot|place|world|charts?|list|hits?|top|hole|size)\b",
)
_CIRCLE = [
    (
        pattern(
            r"(?:\b(?:in|inside|within|at|see|numbers?|labell?ed|marked|and|or|of)[ ]|[(,][ ]?|[在看和与、]|^|[.!?:;,。]\s|[\n。,;])[*_`]{0,3}$",
        ),
        pattern(rf"[*_`]{{0,3}}(?:[ ]?(?:{_SAYS}\b|[),.]|and[ ]|or[ ]|mark|[和与是中里内有显、])|$)"),
    ),
    (pattern(r"\b(?:in|inside|within) $"), pattern("")),
]
"""What stands before and behind a circled digit that is text to show something; before other text it numbers a list."""
_NO_FRACTION = r"(?!\.\d|[ ]?[%°x×]|/\d)"
_BEHIND_CLAUSE = [
    (pattern(r"[ ]\((?:#|no\.[ ]?|number[ ])?[*_`\"'#]{0,3}$"), pattern(r"\)")),
    (pattern(r",[ ](?:number[ ]|no\.[ ]?|#)?[*_`\"'#]{0,3}$"), pattern(r",[ ]\D")),
    (
        pattern(
            r"(?:(?:,|[ ]and|[ ]is|[ ]are|[ ]\()[ ]?(?:labell?ed|marked|numbered|tagged)[ ](?:(?:as|by|with)[ ])?(?:(?:an?|the)[ ])?(?:number[ ])?"
            r"|[ ]is[ ](?:(?:box|region)[ ])?number[ ])[*_`\"'#]{0,3}$",
        ),
        pattern(_NO_FRACTION),
    ),
]
"""What stands before and behind a number behind a clause on a region: ``(3)``, ``, 4,``, ``, labeled 2``, ``is number 1``."""
_AROUND = pattern(
    rf"{NOUN}[ ](around|on|at|in|near|over|along|by|beside|behind|above|below|under|between|next[ ]to|to[ ]the|of|with|for|from|containing|covering|"
    r"surrounding|enclosing|outlining|highlighting|marking|(?:that|which)[ ](?:surrounds?|encloses?|covers?|outlines?|marks?|highlights?|is|are)|"
    r"outlined|highlighted|drawn|marked|is|are|was|placed|located)\b"
    r"(?:(?!\b(?:has|have|had|contains?|holds?|shows?|displays?|depicts?|features?|includes?|reads?|says?|reveals?|see|sees|wears?|counts?|there|"
    r"numbers?|about|total(?:s|ling)?)\b)[^.;:!?\n]){0,60}$",
)
"""A region word and what tells where the region is: ``the box around the dog``."""
_HOLDS = pattern(r"\b(?:with|of|containing|for)\b[^,]*s$")
"""A clause whose bracketed number counts what stands before it: ``the box with cups (3)``."""
_CONTRAST = pattern(
    rf"[\s,;:()—–*-]*(?:but |and )?(?:{pieces('not')}|{pieces('instead')}|{pieces('ignoring')})[\s,;:—-]*(?:{pieces('filler')}[\s,]*){{0,2}}[*`]*",
)
"""What stands between a box and the bare number of another, of which only one counts: ``box 3, not 4``."""
_NO_NTH_AFTER = pattern(
    r"\s+(?:to|from|on)\b|\s+of\b(?! the (?:image|picture|photo))|\s+(?:(?:#|number\s)\s*)?\d"
    r"|\s*(?:[,(:—-]\s*)?(?:(?:is|was|labell?ed|marked|namely|called|i\.e\.,?|being|as)\s+)*[*_`\"'(\[]*(?:the\s+)?"
    r"(?:R[ _#-]?\d|(?:(?:bounding[ -]?|b)?box|region|area|rectangle)[ _-]?[#R]?\d|another region\b)",
)
_LOOKED_AT = pattern(r"\s+(?:(?:that|which)\s+)?(?:I|we|you|he|she|they|it|one|my|the person)\b")
_INSIDE = pattern(r"\b(?:in|inside|within|at)\s+(?:the\s+)?$")
_NO_NTH_BEFORE = pattern(r"\b(?:my|his|her|their|our|a|an|another|every|each|no)\s+$")
_ARTICLE = r"(?:the|an?|de[rmn]|die|das|eine?[nmrs]?|l[aeo]s?|el|il|gli|un[aeo]?|uma?|os?|as?|i)"
_AND_THE_NTH = pattern(
    rf"(?:(?!{words('numbers')})[^.!?\n\d。])*"
    rf"(?:[,;—、]|{words('joins', 'but')}|\b(?:while|whereas|während|mientras|tandis que|mentre|enquanto|than))"
    rf"\s*(?:(?:{pieces('the')}\s+)+|(?=\d*[^!-~\s\d]))"
)
_IN_SERIES = pattern(
    r"\s*(?:[.,;:!()—-]|$|입니다|です|"
    rf"(?:one|{_ARTICLE}|{_SAYS}|{pieces('verbs', 'shows')})(?![{LETTER}])(?! (?:the )?(?:same|only|one|first|last|time|place)\b))",
)
"""What stands before and behind an ordinal without a noun that goes on from ``the second box``."""
_USES_THEM = pattern(rf"{words('uses')}\W+(?:\w+\W+)?$")
_ARE_USED = pattern(rf"[^.;!?\n,|:]{{0,25}}?{words('relevant', 'uses')}")
_NOT_ALL = pattern(
    rf"{words('none', 'denies', 'except')}|n't|\b(?:only|but|however|if|whether|should|would|could|might|which|you|your)\b"
)
"""What stands before or behind all boxes that are used, and what in a clause that does not use them all."""
_EXCEPT = pattern(
    rf"(?:{words('every', 'all')}[^.;!?\n]*{NOUN}(?! of )[^.;!?\n]*{pieces('except')}"
    rf"|\b(?:all|every)(?: of)?(?: the)? {NOUN} but(?: for)?)\s*(?:{pieces('the')}\s+)?#?$",
)
_RELEVANT = pattern(
    rf"(?<![{LETTER}])(?:key|correct|right|important|necessary|evidence|supporting|target|answer|{pieces('relevant', 'used')})[ _]*(?:bounding )?$",
)
_DISMISSED_KIND = pattern(rf"{pieces('ignored_kinds')}[ _]+$")
_FRAME_JOINT = pattern(rf"(?:\s+|(?<=[^!-~]))(?:{pieces('signs', 'labelled', 'from')}\s*){{0,2}}[#'\"*_`\[]*")
"""What stands between a word such as frame or label and its number; ``label: 3 g`` and ``frame_2.png`` name no box."""
_OF_TOTAL = pattern(r"[ ](?:out[ ])?of[ ](\d{1,3})\b")


def same_length(text: str) -> str:
    """Return the text with plain dashes, quotes, spaces, subscripts and full-width forms.

    Every place stays the same.
    """
    return text.translate(SAME)


def groups(text: str, count: int) -> list[Group]:
    """Return the groups of a text, from left to right; they do not overlap.

    Args:
        text: what a model or an annotator wrote, without invisible characters (``lexer.INVISIBLE``).
        count: number of boxes: beyond it only strong forms name a box (module docstring).
    """
    read, out = Text(same_length(text), count), list[Group]()
    for at, token in enumerate(read.tokens):
        head, last = _HEADS.get(token.kind), out[-1] if out else None
        # A token inside the group before is read already.
        if head is None or (last is not None and token.start < last.end):
            continue
        group = head(read, at, last)
        if group is not None:
            out.append(group)
    return out


# --- heads


def _name(text: Text, at: int, last: Group | None) -> Group | None:
    """Read a group beginning with ``R2``."""
    token = text.tokens[at]
    before, after = text.before(token.start), text.after(token.end)
    (number,), weak = text.item(at).numbers, " " in token.text or token.text[1] == ")"
    plate = after[:1] == "R" and any(
        int(one) > text.count for one in re.findall(r"\d+", (token.text + after).split(" ")[0])
    )
    sided = weak and "(" in before[-1:] + token.text and _SIDES.search(before + after)
    if plate or sided or _NO_NAME.search(before) or (number > text.count and _BUS.match(after)):
        return None
    strong = not weak and (token.text[0] == "R" or before[-1:] in ("`", "*"))
    return read_list(text, token.start, at, "name", strong) if text.kept(number, strong) else None


def _noun(text: Text, at: int, last: Group | None) -> Group | None:
    """Read a group beginning with a region word."""
    token = text.tokens[at]
    before = text.before(token.start)
    bridge = _BRIDGE.match(text.kinds, at + 1)
    first, kinds = (bridge.end(), bridge[0]) if bridge else (at + 1, "")
    relevant = "u" in kinds or _RELEVANT.search(before)
    behind = _BEHIND.match(text.kinds, first) or (_CHAIN.match(text.kinds, first) if relevant else None)
    if behind and (behind.re is _BEHIND or _IN_SERIES.match(text.after(text.tokens[behind.end() - 1].end))):
        return _ordinals(text, token.start, text.tokens[first : behind.end()])
    if not text.kinds.startswith(("#", "R"), first) or (
        token.kind != "n" and not _LABELLED.fullmatch("l" * bool(_OBJECT.match(text.whole, token.start)) + kinds)
    ):
        return None
    number, word, many = text.tokens[first], token.text, bool(_MANY.fullmatch(token.text))
    joint, behind_it = text.whole[token.end : number.start], text.after(number.end)
    if (
        _NO_BRIDGE.search(joint)
        or ("/" in kinds and LIST_NUMBER.match(text.whole, number.start))
        or _ANOTHER.search(before)
    ):
        return None
    frame = _FRAME.fullmatch(word)
    if frame and (
        not (relevant or _FRAME_JOINT.fullmatch(text.whole, token.end, number.start)) or _OTHER_FRAME.search(before)
    ):
        return None
    if ("f" in kinds and not text.kinds.startswith(("#t#", "#th#"), first)) or ("v" in kinds and not relevant):
        return None
    bracket = re.search(r"[\[(]", joint)
    if bracket and text.coordinates(token.end + bracket.end(), many):
        return None
    item, strong, digits_alone = text.item(first), bool(_STRONG.fullmatch(word)), number.kind == "#"
    if digits_alone and not text.is_name(number, frame or re.search(r"[({\[<:=→⇒]", joint) or "v" in kinds, word):
        return None
    if not text.kept(item.numbers[0], strong) or (
        number.text.isalpha() and _KNOWN.search(before) and not _ENDS_THERE.match(behind_it)
    ):
        return None
    again = "many" if many or bracket or re.search("[f:]", kinds) else "one"
    group = read_list(text, token.start, first, again if digits_alone else "name", strong)
    if len(group.numbers) > 1 or item.kind != "digits" or not digits_alone:
        return group
    if (
        ":" in kinds
        and _PLURAL.fullmatch(word)
        and not relevant
        and "[" not in joint
        and not _DISMISSED_KIND.search(before)
    ):
        return None  # "Bounding boxes: 4" says how many there are
    total = _OF_TOTAL.match(behind_it) if again == "one" else None
    if total is None:
        # Other boxes than the item's may be meant where the total differs.
        return group
    if "box" in word.lower() and int(total[1]) != text.count:
        return None  # boxes also stand on shelves: "box 2 of 6"
    return Group(group.start, group.end + total.end(), group.items, True)


def _bracketed(text: Text, at: int, last: Group | None) -> Group | None:
    """Read ``R[1-3]``, ``R_{1,2}`` and ``<regions>1, 3</regions>``."""
    kept = text.kept(text.item(at + 1).numbers[0], False)
    return read_list(text, text.tokens[at].start, at + 1, "many", False) if kept else None


def _ordinal(text: Text, at: int, last: Group | None) -> Group | None:
    """Read a group such as ``second box`` or ``first two boxes``."""
    token = text.tokens[at]
    before = text.before(token.start)
    match = _NTH_NOUN.match(text.kinds, at)
    if _EXCEPT.search(before):
        return _ordinals(text, token.start, [token])
    if match is None or text.kinds[match.end() - 1] == "#":
        return _in_series(text, token, last)
    if _nth_item(token, 0).kind == "ordinal" and _NO_NTH_BEFORE.search(before):
        return None
    noun = text.tokens[match.end() - 1]
    behind, no_box = text.after(noun.end), noun.text.isascii() and _NO_NTH.fullmatch(noun.text)
    if no_box or _NO_NTH_AFTER.match(behind) or (_LOOKED_AT.match(behind) and not _INSIDE.search(before)):
        return None  # "the first box I look at"
    plural, chain = bool(_PLURAL.fullmatch(noun.text)), text.tokens[at : at + len(match[1])]
    number = match.start(2) if match[2] else at - 1
    if not match[2] and (text.kinds[number:at] not in ("#", "b") or not (plural or _MANY.fullmatch(noun.text))):
        return _ordinals(text, token.start, chain, noun.end) if len(chain) > 1 or not plural else None
    how_many, first = _how_many(text, number), place(token, text.count)
    begin = 1 if first == 1 else first - how_many + 1
    return _several(text, token, noun, begin, how_many) if len(chain) == 1 and first in (1, text.count) else None


def _how_many(text: Text, at: int) -> int:
    return 2 if text.kinds[at] == "b" else value(text.tokens[at].text)


def _in_series(text: Text, token: Token, last: Group | None) -> Group | None:
    """Read an ordinal without a noun behind a box with an ordinal: ``the second box shows a cook, the fifth a pan``."""
    after = text.after(token.end)
    if last is None or token.start > last.end + 2 * NEAR or not _IN_SERIES.match(after):
        return None
    first, between = last.items[0], text.whole[last.end : token.start]
    alike = (
        first.kind in ("ordinal", "sign") or first.start == last.start or after.startswith(" one")
    ) and _AND_THE_NTH.match(between + token.text)
    return _ordinals(text, token.start, [token]) if alike and alike.end() == len(between) else None


def _ordinals(text: Text, start: int, chain: Sequence[Token], end: int = 0) -> Group | None:
    """Read the ordinals of "the first, second and third", or of ``vùng thứ hai``, where they stand behind the region word."""
    items = tuple(_nth_item(one, place(one, text.count)) for one in chain if one.kind in "NB")
    kept = all(1 <= item.numbers[0] <= text.count for item in items)
    return Group(start, end or chain[-1].end, items, any(item.kind == "sign" for item in items)) if kept else None


def _all(text: Text, at: int, last: Group | None) -> Group | None:
    """Read "both boxes" and "all four boxes", where there are as many boxes."""
    token, match = text.tokens[at], _ALL_OF.match(text.kinds, at)
    if match is None:
        return None
    noun, how_many = text.tokens[match.end() - 1], 2
    if match[1]:
        how_many = _how_many(text, match.start(1))
    elif token.kind == "a":
        clause = token.text.join(text.clause(token.start, token.end))
        used = _USES_THEM.search(text.before(token.start)) or _ARE_USED.match(text.after(noun.end))
        if not used or _NOT_ALL.search(clause):
            return None
        how_many = text.count
    return _several(text, token, noun, 1, how_many) if how_many == text.count else None


def _several(text: Text, word: Token, noun: Token, first: int, how_many: int) -> Group | None:
    """Return the group of several consecutive boxes named by a word; None where the item has fewer boxes."""
    numbers = tuple(range(first, first + how_many))
    if not 1 <= first <= numbers[-1] <= text.count:
        return None
    return Group(word.start, noun.end, (Item(word.start, word.end, numbers, "ordinal"),), True)


def _number(text: Text, at: int, last: Group | None) -> Group | None:
    """Read a number by itself: ``#2``, a circled digit, ``the box around the dog (3)``, and "box 3, not 4"."""
    token = text.tokens[at]
    before, after = text.before(token.start), text.after(token.end)
    item = text.item(at)
    if token.text.lower() == "one":
        return _noun(text, at, last)
    counts = text.counts(token.end) and before[-1:] != "("
    if item.kind == "word" or len(token.text) > 2 or counts or not text.kept(item.numbers[0], False):
        return None
    contrast = (
        last is not None and token.start - last.end < NEAR and _CONTRAST.fullmatch(text.whole[last.end : token.start])
    )
    alone = any(
        leads.search(before) and follows.match(after)
        for leads, follows in (_CIRCLE if token.text in CIRCLED else _LABELS)
    )
    hashed = before.endswith("#") and _NO_HASH.search("".join(text.clause(token.start, token.end)))
    if _EXCEPT.search(before):
        return read_list(text, item.start, at, "many", False)
    if not contrast and (hashed or not (alone or _behind_clause(before, after))):
        return None
    return Group(item.start, item.end, (item,), item.kind == "sign")


def _behind_clause(before: str, after: str) -> bool:
    """Return whether a number follows a clause on where a box is: ``the box around the dog (3)``."""
    for leads, follows in _BEHIND_CLAUSE:
        label = leads.search(before)
        if label and follows.match(after):
            clause = _AROUND.search(before[: label.start()])
            counts = label[0][:2] == " (" or (clause and clause[1] == "of")
            return clause is not None and not (counts and _HOLDS.search(clause[0]))
    return False


def _nth_item(token: Token, number: int) -> Item:
    """Return the item of an ordinal: the whole word in English, the digits alone in other languages."""
    word = token.text.lower()
    if word in ENGLISH_NTH or re.fullmatch(r"last|final|\d+(?:st|nd|rd|th)", word):
        return Item(token.start, token.end, (number,), "ordinal")
    return Item(*digits(token), (number,), "digits" if re.search(r"\d", word) else "sign")


_HEADS = {
    "R": _name,
    "n": _noun,
    "g": _noun,
    "N": _ordinal,
    "b": _all,
    "a": _all,
    "L": _bracketed,
    "#": _number,
}
"""What reads a group that begins with a token, by the kind of the token."""
