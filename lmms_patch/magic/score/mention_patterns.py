"""The patterns of ``mentions``: how region words, numbers, joints and the words against a mention are spelt. No logic.

Texts have any length and any author, so a pattern's time must grow at most in proportion to the text. A repeated part is therefore followed by
``(?!...)`` of the same characters where the next part could match them too: then there is only one way to read a run of them
(``tests/magic/score/test_cost.py``).
"""

from __future__ import annotations

import re

WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
ORDINALS = [
    "zeroth",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
]

SAME = str.maketrans(
    "‐‑‒–−﹣－―“”„‟«»‘’‚′\u00a0\u2007\u2009\u202f\u3000₀₁₂₃₄₅₆₇₈₉０１２３４５６７８９Ｒ（）［］，；：",
    '-------—""""""\'\'\'\'     01234567890123456789R()[],;:',
)
"""Replacements of one character by one, so that places in the text stay the same."""

LEFT = r"(?<![A-Za-z0-9À-ɏ])"
RIGHT = r"(?![A-Za-z0-9À-ɏ²³])"
WORD = r"(?:bounding[ -]?box(?:es|\(es\))?|b-?box(?:es)?|box(?:es|\(es\))?|r[ée]gi[oó]n(?:s|\(s\)|es)?|areas?|rectangles?)"
UNIT = (
    r"(?:feet|foot|ft|inch(?:es)?|met(?:er|re)s?|cm|mm|m|km|miles?|pixels?|px|times|years?|days?|weeks?|hours?|minutes?|seconds?|pounds|lbs?|kg|"
    r"percent|dollars|o'clock|[ap]\.?m\.?|degrees|ohms?)"
)
PLAIN = rf"(?P<plain>\d{{1,3}}){RIGHT}(?!\.\d)(?![ ]?[%°ΩΩ]|'{{2}})(?![ ]?[x×][ ]?\d)(?![ -]?{UNIT}\b)"
SPELT = rf"(?P<spelt>{'|'.join(sorted(WORDS, key=len, reverse=True))}){RIGHT}(?!-[a-z])"
NO_BOX = (
    r"(?!\.\d)(?!\^)(?![- ]D2)(?!-(?!R?\d)[A-Za-z]+\d)(?![ ]*[=≈~][ ]*\d*\.\d)(?![ ]*=[ ]*\d+[ ]?[kM]?(?:Ω|Ω|ohm))"
    r"(?![ ](?:scores?|coefficients?|statistics?|buttons?|triggers?|shoulder)\b)"
)
R = (
    rf"(?P<letter>[Rr])(?:\}}?_?\{{(?P<braced>\d{{1,3}})\}}|\}}?[_#-]?(?P<tight>\d{{1,3}}){RIGHT}|(?<=(?-i:R))[ ](?P<loose>\d{{1,2}}){RIGHT}"
    rf"(?![ ]?[%°]|[ ]{UNIT}\b|[ ](?-i:[A-Z])\b)){NO_BOX}"
)
OPEN = r"[*_`\"'$({\[<}]*(?![*_`\"'$({\[<}])"
CLOSE = r"[*_`\"'$)}\]>\\]*"
JOINED_HEAD = rf"(?:{WORD}(?:[ _-]|[ ]?#|[ ]no\.[ ]?)?|#)?"
RANGE = re.compile(
    rf"{CLOSE}(?:(?P<dash>[ \t]*-[ \t]*|—|[ \t]*(?:\.{{2,3}}|…)[ \t]*|[ \t]*[~〜～][ \t]*)|[ \t]+"
    r"(?P<to>to|through|thru|until|up to|all the way to)[ \t]+)"
    rf"(?={OPEN}(?:{JOINED_HEAD})?{OPEN}[Rr\d]|[a-z])",
    re.I,
)
LIST = re.compile(
    rf"{CLOSE}(?:[ \t]*(?P<comma>[,;、])[ \t]*(?![ \t])\n?(?!\s*\d+[.)]\s)[ \t]*(?:(?P<end1>and|or|&)\b[ \t]*)?(?:also[ \t]+)?"
    r"|[ \t]*(?:[/&+])[ \t]*|\s+(?P<end2>and/or|and also|as well as|and|or|plus)\s+(?:also\s+)?|[ ]?(?:和|或|与)[ ]?)",
    re.I,
)
ITEM_R = re.compile(rf"(?P<open>{OPEN})(?:{JOINED_HEAD}{OPEN})?{R}", re.I)
ITEM_N = re.compile(rf"(?P<open>{OPEN})(?P<again>{JOINED_HEAD})(?P<open2>{OPEN})(?:{PLAIN}|{SPELT})", re.I)

LABELLED = (
    r"(?:with[ ])?(?:the[ ])?(?:labels?|numbers?|ids?|indices|index|nos?\.|num\.?)(?:[ ]of)?"
    r"|(?:(?:that|which)[ ](?:is|are)[ ])?(?:labell?ed|marked|numbered|named|called|tagged|identified|denoted|designated)"
    r"(?:[ ](?:as|by|with|from))?(?:[ ](?:the[ ])?(?:numbers?|labels?))?"
)
HEAD = re.compile(
    rf"{LEFT}(?P<word>{WORD})(?P<used>[ _](?:I[ ](?:have[ ])?)?used|[ ]of[ ]interest)?"
    rf"(?P<joint>[ ]?[\"'*_`}}]*(?![\"'*_`}}])(?:[ \t]*(?:{LABELLED})(?![A-Za-z])[\"'*]*(?![\"'*]))?[ \t]*"
    rf"(?:(?P<verb>(?:is|are|were|was)(?![A-Za-z]))[ \t]*)?(?:(?P<colon>[:=])[ \t]*)?(?:\n(?!\s*\d+[.)])[ \t]*)?[#_-]?)"
    rf"(?P<open>{OPEN})[#]?(?:(?={R})|{PLAIN}|{SPELT})",
    re.I,
)
BARE_R = re.compile(rf"{LEFT}(?<![A-Za-z0-9]-){R}", re.I)
NTH = rf"(?:{'|'.join(sorted(ORDINALS[1:], key=len, reverse=True))}|1st|2nd|3rd|\d{{1,2}}th)"
ORDINAL = re.compile(
    rf"{LEFT}(?P<ordinal>{NTH})(?P<more>(?:(?:,[ ](?:and[ ])?|[ ](?:and|or|&)[ ])(?:the[ ])?{NTH}){{0,40}})"
    r"(?:[ ](?P<several>two|three|four|five|six|[2-6]))?"
    r"(?:[ ](?:red|green|blue|yellow|highlighted|marked|numbered|labell?ed|outlined|given|drawn|annotated|colou?red))*"
    r"[ ](?P<noun>bounding[ -]?box(?:es)?|bbox(?:es)?|box(?:es)?|regions?|rectangles?)(?![A-Za-z])",
    re.I,
)
NOT_ORDINAL_AFTER = re.compile(
    r"\s+(?:to|from|on)\b|\s+of\b(?! the (?:image|picture|photo))|\s+(?:(?:#|number\s)\s*)?\d"
    r"|\s*(?:[,(:—-]\s*)?(?:(?:is|was|labell?ed|marked|namely|called|i\.e\.,?|being|as)\s+)*[*_`\"'(\[]*(?:the\s+)?"
    r"(?:R[ _#-]?\d|(?:(?:bounding[ -]?|b)?box|region|area|rectangle)[ _-]?[#R]?\d|another region\b)",
    re.I,
)
LOOKED_AT = re.compile(r"\s+(?:(?:that|which)\s+)?(?:I|we|you|he|she|they|it|one|my|the person)\b", re.I)
INSIDE = re.compile(r"\b(?:in|inside|within|at)\s+(?:the\s+)?$", re.I)
NOT_ORDINAL_BEFORE = re.compile(r"\b(?:my|his|her|their|our|a|an|another|every|each|no)\s+$", re.I)

COUNTED = re.compile(
    r"people|person|persons|man|men|woman|women|child|children|feet|mice|sheep|fish|geese|other|others|more|"
    r"different|additional|extra|separate|similar|distinct|identical|small|large|big|little|tall|short|young|old|"
    r"red|blue|green|yellow|black|white|brown|gray|grey|orange|pink|purple|wooden|metal|glass|empty|open|round|"
    r"main|adult|smaller|larger|whole|full|half|half-full|of"
)
NO_NOUN = re.compile(
    r"is|was|has|does|this|its|as|us|thus|plus|less|versus|vs|across|towards|besides|perhaps|always|sometimes|"
    r"afterwards|regards|alas|yes|shows|contains|appears|seems|looks|depicts|includes|holds|features|covers|overlaps|"
    r"reveals|displays|captures|lies|sits|stands|focuses|highlights|matches|represents|corresponds|provides|gives|"
    r"helps|makes|needs|encloses|surrounds|marks|outlines|frames|encompasses|indicates|suggests|confirms|remains|"
    r"belongs"
)
PRONOUN = re.compile(r"\s+(?:can|could|may|might|would|should|must|sees?|finds?|notices?|has to|who|that|of)\b", re.I)
FROM = re.compile(r"\bfrom\s+(?:the\s+)?$", re.I)
ALL_FROM = re.compile(
    r"\b(?:boxes|regions|areas|rectangles|all|everything|numbered|labell?ed|marked|rang(?:e|es|ing)|sequentially)\W+(?:[a-z]+\W+){0,2}from\s+$", re.I
)
PAIRS = re.compile(
    r"\b(?:compar\w*|connect\w*|link\w*|relat\w*|match\w*|prefer\w*|clos(?:e|er|est)|next|adjacent|near(?:er|est)?|equal|similar|mov\w*|switch\w*|"
    r"return\w*|jump\w*|shift\w*|go|going|turn\w*)\s+(?:the\s+)?$",
    re.I,
)
RELEVANT = re.compile(r"\b(?:relevant|useful|key|correct|right|important|necessary|used|needed|chosen|selected)[ _]+(?:bounding )?$", re.I)
