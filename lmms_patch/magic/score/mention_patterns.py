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

HAN = "零一二三四五六七八九十"
"""Chinese numerals; their place is their value."""
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0f\ufeff]")
"""Characters without width, which some models write between a letter and its number."""

LEFT = r"(?<![A-Za-z0-9À-ɏ])"
RIGHT = r"(?![A-Za-z0-9À-ɏ²³])"
FAR_EAST = (
    r"(?:(?:边界|邊界|矩形|标注|標註|标记|方|边|邊|红|紅|选|選)?框|边界盒|(?:矩形|红色|标注|标记)?区域|區域|領域|枠線?|矩形|(?:バウンディング)?ボックス|"
    r"エリア|영역|구역|상자|(?:바운딩[ ]?)?박스)"
)
"""Words for a box in Chinese, Japanese and Korean."""
EUROPE = (
    r"(?:regionen|bereiche?n?|k[aä]sten|rahmen|boxen|rechtecke?n?|zon(?:e|en|es|a|as)|bo[iî]tes?(?:[ ]englobantes?)?|cadres?|encadr[eé]s?|"
    r"(?:re)?cuadros?|cajas?|[aá]reas?|rect[aá]ngulos?)"
)
"""Words for a box in German, French and Spanish, where they differ from the English ones; all are weak."""
WORD = (
    r"(?:bounding[ _-]?box(?:es|\(es\))?|b-?box(?:es)?|box(?:es|\(es\))?|r[ée]gi[oó]n(?:s|\(s\)|es)?(?!en)|"
    rf"rois?|areas?|rectangles?|frames?|labels?|outlines?|{EUROPE}|{FAR_EAST})"
)
STRONG = re.compile(r"(?:bounding|b-?box|box(?!en)|r[ée]gi|roi)|.*(?:框|盒|域|枠|ボックス|영역)", re.I)
PLURAL = re.compile(rf".*(?:s|\)|regionen|boxen|bereichen?|kästen|rechtecken?|zonen)|{FAR_EAST}", re.I)
AMBIGUOUS = re.compile(r"frame|label|outline|zon|bo[iî]te|cadre|cuadro|caja|rahmen|k[aä]sten|상자|박스|エリア", re.I)
"""Words that often mean another thing: a number after them that counts something names no box."""
OTHER_FRAME = re.compile(
    r"\b(?:picture|photo|window|door|video|time|key|bed|bike|wooden|glasses|price|name|shipping|food|warning|wine|address|black|war|comfort|A)[ -]+$",
    re.I,
)
"""What stands before a frame or label that is no region."""
UNIT = (
    r"(?:feet|foot|ft|inch(?:es)?|met(?:er|re)s?|cm|mm|m|km|miles?|pixels?|px|times|years?|days?|weeks?|hours?|minutes?|seconds?|pounds|lbs?|kg|"
    r"percent|dollars|o'clock|[ap]\.?m\.?|degrees|ohms?|grams?|g|ml|rows|metern?|zentimetern?|sekunden|jahren?|mal|m[eè]tres|metros|secondes|segundos|"
    r"ans|años|fois|veces|euros?)"
)
COUNTER = r"(?![ ]?[个個名人只隻張张把条條辆輛岁歳米点點次种種位件块塊本台棵匹頭头つ枚冊月年日時分円步歩开개명대년월살권잔]|[ ]?마리|[ ]?사람)"
"""No number of a box stands before these counting words of Chinese, Japanese and Korean."""
CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳❶❷❸❹❺❻❼❽❾❿➀➁➂➃➄➅➆➇➈➉➊➋➌➍➎➏➐➑➒➓"
PLAIN = rf"(?P<plain>\d{{1,3}}|[{CIRCLED}]){RIGHT}(?!\.\d)(?![ ]?[%°ΩΩ]|'{{2}})(?![ ]?[x×][ ]?\d)(?![ -]?{UNIT}\b){COUNTER}"
_AFTER_HAN = r"(?=\s|[是中里裡内內有和与與或、,。;:的为為在显顯包也都则則]|$)"
SPELT = rf"(?P<spelt>{'|'.join(sorted(WORDS, key=len, reverse=True))}|(?<=[框域盒])[一二三四五六七八九十]{_AFTER_HAN}){RIGHT}(?!-[a-z])"
NO_BOX = (
    r"(?!\.\d)(?!\^)(?![- ]D2)(?!-(?!R?\d)[A-Za-z]+\d)(?![ ]*[=≈~][ ]*\d*\.\d)(?![ ]*=[ ]*\d+[ ]?[kM]?(?:Ω|Ω|ohm))"
    r"(?![ ](?:scores?|coefficients?|statistics?|buttons?|triggers?|shoulder)\b)"
)
R = (
    rf"(?P<letter>[Rr])(?:\}}?_?\{{(?P<braced>\d{{1,3}})\}}|\}}?[_#-]?(?P<tight>\d{{1,3}})(?:{RIGHT}|(?=(?:(?-i:R)\d{{1,2}}){{1,9}}{RIGHT}))"
    rf"|(?<=(?-i:R))(?:\.|_?\()(?P<dotted>\d{{1,2}})(?:(?<=\.\d)|(?<=\.\d\d)|\)){RIGHT}|(?<=(?-i:R))[ ](?P<loose>\d{{1,2}}){RIGHT}"
    rf"(?![ ]?[%°]|[ ]{UNIT}\b|[ ](?-i:[A-Z])\b)"
    rf"|(?<=(?-i:R))[ ]?\([ ]?(?P<inside>\d{{1,2}})[ ]?\){RIGHT}|(?<=\((?-i:R))(?<![A-Za-z0-9]\(R)\)(?P<behind>\d{{1,2}}){RIGHT}"
    rf"(?![ ]?[%°]|[ ]{UNIT}\b)){NO_BOX}"
)
OPEN = r"[*_`\"'$({\[<}]*(?![*_`\"'$({\[<}])"
CLOSE = r"[*_`\"'$)}\]>\\]*"
JOINED_HEAD = rf"(?:{WORD}(?:[ _-]|[ ]?#|[ ]no\.[ ]?)?|#)?"
RANGE = re.compile(
    rf"{CLOSE}(?:(?P<dash>[ \t]*-[ \t]*|—|[ \t]*(?:,[ \t]*)?(?:\.{{2,3}}|…|\\[lc]?dots[a-z]?)[ \t]*(?:,[ \t]*)?|[ \t]*[~〜～][ \t]*|[至到])|[ \t]+"
    r"(?P<to>to|through|thru|until|up to|all the way to|bis(?: zu)?|hasta|à|a)[ \t]+)"
    rf"(?={OPEN}(?:{JOINED_HEAD})?{OPEN}[Rr\d]|[a-z])",
    re.I,
)
LIST = re.compile(
    rf"{CLOSE}(?:[ \t]*(?P<comma>[,;、])[ \t]*(?![ \t])\n?(?!\s*\d+[.)]\s)[ \t]*(?:(?P<end1>and|or|&)\b[ \t]*)?(?:also[ \t]+)?"
    r"|[ \t]*(?:[/&+∪∩]|\\c[ua]p(?![a-z]))[ \t]*|\s+(?P<end2>and/or|and also|as well as|and|or|plus|und|oder|sowie|et|ou|y|o)\s+(?:also\s+)?"
    r"|[ ]?(?:和|或|与|與|及|以及|跟|と|や|および|와|과|및)[ ]?|(?<=\d)(?=(?-i:R)\d))",
    re.I,
)
ITEM_R = re.compile(rf"(?P<open>{OPEN})(?:{JOINED_HEAD}{OPEN})?{R}", re.I)
ITEM_N = re.compile(rf"(?P<open>{OPEN})(?P<again>{JOINED_HEAD})(?P<open2>{OPEN})(?:{PLAIN}|{SPELT})", re.I)

LABELLED = (
    r"(?:with[ ])?(?:the[ ])?(?:labels?|numbers?|ids?|indices|index|nos?\.|num\.?|nr\.|nummer|n[uú]m[ée]ro|n°)(?:[ ]of)?"
    r"|(?:(?:that|which)[ ](?:is|are)[ ])?(?:labell?ed|marked|numbered|named|called|tagged|identified|denoted|designated|outlined(?=[ ]as))"
    r"(?:[ ](?:as|by|with|from))?(?:[ ](?:the[ ])?(?:numbers?|labels?))?"
)
HEAD = re.compile(
    rf"{LEFT}(?P<word>{WORD})(?P<used>[ _](?:I[ ](?:have[ ])?)?used|[ ]of[ ]interest)?"
    rf"(?P<joint>[ ]?[\"'*_`}}]*(?![\"'*_`}}])(?:[ \t]*(?:{LABELLED})(?![A-Za-z])[\"'*]*(?![\"'*]))?[ \t]*"
    rf"(?:(?P<verb>(?:is|are|were|was)(?![A-Za-z]))[ \t]*)?(?:(?P<colon>[:=])[*_`]{{0,3}}(?![*_`])[ \t]*)?(?:\n(?!\s*\d+[.)])[ \t]*)?[#_-]?)"
    rf"(?:(?P<from>from)[ ](?=\d{{1,2}}[ ](?:to|through|until)[ ]\d{{1,2}}(?![ ]?[%°x×]|\.\d|[ ]{UNIT}\b)))?"
    rf"(?P<open>{OPEN})[#]?(?:(?={R})|{PLAIN}|{SPELT})",
    re.I,
)
NO_LETTER = re.compile(r"\(L\)|\b[A-QS-Z] ?\(\d")
"""What stands beside ``(R)2`` and ``R (2)`` where the letter is one of several: left and right, the tiles of a game."""
BARE_R = re.compile(rf"{LEFT}(?<![A-Za-z0-9]-){R}", re.I)
NTH = rf"(?:{'|'.join(sorted(ORDINALS[1:], key=len, reverse=True))}|1st|2nd|3rd|\d{{1,2}}th)"
ORDINAL = re.compile(
    rf"{LEFT}(?P<ordinal>{NTH})(?P<more>(?:(?:,[ ](?:and[ ])?|[ ](?:and|or|&)[ ])(?:the[ ])?{NTH}){{0,40}})"
    r"(?:[ ](?P<several>two|three|four|five|six|[2-6]))?"
    r"(?:[ ](?:red|green|blue|yellow|highlighted|marked|numbered|labell?ed|outlined|given|drawn|annotated|colou?red))*"
    r"[ ](?P<noun>bounding[ -]?box(?:es)?|bbox(?:es)?|box(?:es)?|regions?|rectangles?|areas?|rois?|one(?=\W))(?![A-Za-z])",
    re.I,
)
_COLOUR = r"(?:[ ]?(?:红色|红|標註|标注|标记|标出|赤い|빨간|rote[nmrs]?|markierte[nmrs]?|umrandete[nmrs]?|的))*[ ]?"
_NTH_OF = {
    "german": [("erste", 1), ("zweite", 2), ("dritte", 3), ("vierte", 4), ("fünfte", 5), ("sechste", 6), ("siebte", 7), ("achte", 8)],
    "french": [
        ("premi[eè]re?", 1),
        ("(?:deuxi[eè]me|seconde)", 2),
        ("troisi[eè]me", 3),
        ("quatri[eè]me", 4),
        ("cinqui[eè]me", 5),
        ("sixi[eè]me", 6),
    ],
    "spanish": [("primer[oa]?", 1), ("segund[oa]", 2), ("tercer[oa]?", 3), ("cuart[oa]", 4), ("quint[oa]", 5), ("sext[oa]", 6)],
    "korean": [("첫", 1), ("두", 2), ("세", 3), ("네", 4), ("다섯", 5), ("여섯", 6), ("일곱", 7), ("여덟", 8)],
}
"""Ordinals, as patterns, and their values."""
FOREIGN_NTH = [(re.compile(pattern, re.I), number) for some in _NTH_OF.values() for pattern, number in some]
_LATIN = "|".join(
    [rf"(?:{'|'.join(name for name, _ in _NTH_OF['german'])})[nmrs]?"] + [name for some in ("french", "spanish") for name, _ in _NTH_OF[some]]
)
FOREIGN_ORDINAL = re.compile(
    rf"第(?P<chinese_too>[一二三四五六七八九十]|\d{{1,2}})[个個]?"
    rf"(?=[ ]?[、和与及,][ ]?第(?:[一二三四五六七八九十]|\d{{1,2}})[个個]?{_COLOUR}{FAR_EAST})"
    rf"|(?:编号|标号|序号|編號|標號)[为為是]?[ ]?(?P<named>\d{{1,2}})[ ]?{_COLOUR}{FAR_EAST}"
    rf"|{LEFT}(?P<latin_too>{_LATIN})(?=,?[ ](?:und|oder|et|ou|y|o)[ ](?:(?:die|der|das|den|dem|la|le|el)[ ])?(?:{_LATIN}){_COLOUR}"
    rf"[ ]?(?:r[ée]gi[oó]n|rectangle|{EUROPE})(?![A-Za-zÀ-ɏ]))"
    rf"|第[ ]?(?P<chinese>[一二三四五六七八九十]|\d{{1,2}})[ ]?[个個号號]?{_COLOUR}{FAR_EAST}"
    rf"|{LEFT}(?P<counted>\d{{1,2}})[ ]?(?:号|號|番目?の?|つ目の|번째?)[ ]?{_COLOUR}{FAR_EAST}"
    rf"|(?P<korean>{'|'.join(name for name, _ in _NTH_OF['korean'])})[ ]?번째[ ]?{_COLOUR}{FAR_EAST}"
    rf"|{LEFT}(?P<latin>{_LATIN}){_COLOUR}(?:[ ]?(?:r[ée]gi[oó]n|rectangle|box)|[ ]?{EUROPE})(?![A-Za-zÀ-ɏ])",
    re.I,
)
"""The n-th box, and box number n before its word:
``第二个框``, ``2号框``, ``3番目の枠``, ``두 번째 영역``, ``der dritte Kasten``, ``la deuxième région``."""

_SHOWS = (
    r"(?:shows?|contains?|depicts?|highlights?|encloses?|covers?|marks?|outlines?|surrounds?|displays?|captures?|features?|holds?|includes?|"
    r"focuses|encompasses)"
)
_SAYS = rf"(?:{_SHOWS}|is|are|was|has|have|had|looks|seems|appears|lies|sits|does|can|could|might|may|gives)"
_ENDS = rf"(?=[ ]*(?:[.,;:!?)\]|]|$|\n)|[ ](?:and|or|but|while|whereas|both|all|only|there|I|we|a|an|the|to|with|{_SAYS})\b|'s\b)"
TAGGED = re.compile(
    rf"<(?P<word>{WORD})(?:[ ][^<>]{{0,40}})?>[ ]*(?:#|R)?(?P<number>\d{{1,2}})(?=(?:[ ]*(?:,|;|&|-|and)[ ]*(?:#|R)?\d{{1,2}}){{0,20}}[ ]*</)", re.I
)
"""``<region>3</region>``, ``<regions>1, 3</regions>``."""
BRACKETED = re.compile(rf"{LEFT}R_?[\[{{(](?P<number>\d{{1,2}})(?=(?:[ ]?(?:[,;&-]|\.{{2,3}})[ ]?\d{{1,2}}){{1,20}}[ ]?[\]}})])")
"""``R[1-3]``, ``R_{1,2}``."""
HASHED = re.compile(
    rf"(?:(?P<said>\b(?:in|inside|within|at|see|check|consider|examine|of|from|and|or|both|than|with|to)[ ]|"
    rf"\()|(?:^|(?<=[.!?:;\n][ ])|(?<=\n)))[*_`]{{0,3}}#"
    rf"(?P<number>\d{{1,2}}){RIGHT}(?!\.\d)[*_`]{{0,3}}(?P<ends>{_ENDS})",
    re.I | re.M,
)
"""``#2``, where the words around it speak of a place: ``in #2``, ``(#2)``, ``#2 shows``."""
NO_HASH = re.compile(
    r"\b(?:player|runner|rank\w*|jersey|shirt|uniform|racer|rider|horse|driver|car|seed\w*|number|wear\w*|team|bib|best\w*|question|option|step|choice|"
    r"answer|issue|episode|chapter|page|image|figure|example|route|track|platform|apartment|room|spot|place|world|charts?|list|hits?|top|hole|size)\b",
    re.I,
)
NUMBERED = re.compile(
    rf"(?:^|(?<=[.!?;\n][ ])|(?<=\n))(?:And |Then |Next, )?(?:number|no\.)[ ](?P<number>\d{{1,2}}){RIGHT}(?=[ ]{_SHOWS}\b)", re.I | re.M
)
"""``Number 2 shows ...`` at the start of a sentence."""
_CIRCLES = rf"[{CIRCLED}]"
CIRCLE = re.compile(
    rf"(?:(?P<said>\b(?:in|inside|within|at|see|numbers?|labell?ed|marked|and|or|of)[ ]|[(,][ ]?|[在看和与、])|"
    rf"(?:^|(?<=[.!?:;,\n。][ ])|(?<=[\n。,;])))"
    rf"[*_`]{{0,3}}(?P<number>{_CIRCLES})[*_`]{{0,3}}(?=[ ]?(?:{_SAYS}\b|[),.]|and[ ]|or[ ]|mark|[和与是中里内有显、])|(?<=[ ].)$)",
    re.I | re.M,
)
"""A circled digit that is said to show something; before other text it numbers a list."""
_AROUND = (
    r"(?:around|on|at|in|near|over|along|by|beside|behind|above|below|under|between|next[ ]to|to[ ]the|of|with|for|from|containing|covering|"
    r"surrounding|enclosing|outlining|highlighting|marking|(?:that|which)[ ](?:surrounds?|encloses?|covers?|outlines?|marks?|highlights?|is|are)|"
    r"outlined|highlighted|drawn|marked|is|are|was|placed|located)"
)
_NO_VERB = (
    r"(?:(?!\b(?:has|have|had|contains?|holds?|shows?|displays?|depicts?|features?|includes?|reads?|says?|reveals?|see|sees|wears?|counts?|there|"
    r"numbers?|about|total(?:s|ling)?)\b)[^.;:!?\n])"
)
CLAUSE = re.compile(rf"{LEFT}(?P<word>{WORD})[ ](?P<around>{_AROUND})\b{_NO_VERB}{{0,60}}$", re.I)
"""A region word and what tells where the region is, up to its number: ``the box around the dog (``."""
AFTER_CLAUSE = re.compile(
    rf"(?:(?P<bracket>[ ]\((?:#|no\.[ ]?|number[ ])?(?=\d{{1,2}}\)))|(?P<comma>,[ ](?:number[ ]|no\.[ ]?|#)?(?=\d{{1,2}},[ ]\D))"
    rf"|(?P<label>(?:,|[ ]and|[ ]is|[ ]are|[ ]\()[ ]?(?:labell?ed|marked|numbered|tagged)[ ](?:(?:as|by|with)[ ])?(?:(?:an?|the)[ ])?(?:number[ ])?"
    rf"|[ ]is[ ](?:(?:box|region)[ ])?number[ ]))[*_`\"'#]{{0,3}}(?P<number>\d{{1,2}}){RIGHT}(?!\.\d)(?![ ]?[%°x×]|/\d|[ ]{UNIT}\b)",
    re.I,
)
"""A number behind a clause on a region: ``(3)``, ``, 4,``, ``, labeled 2``, ``is number 1``."""
COUNTS_IN = re.compile(r"\b(?:with|of|containing|for)\b[^,]*s$", re.I)
"""A clause whose bracketed number counts what stands before it: ``the box with cups (3)``."""
MOVES = re.compile(
    r"\b(?:mov|shift|glanc|gaz|eyes?|attention|look|switch|jump|travel|wander|walk|go(?:es|ing)?|lead|extend|span|zoom|scroll|pass|follow|way|route|track|chang|differ|throw|carr|hand|trajector|view|direct|path|distance|return|turn|sweep|drift|stretch|run|"
    r"reach|compar|pan|proceed|step|line|arrow|transition)\w*\b",
    re.I,
)
"""Words of a gaze or thing that goes from one box to another, and does not dwell on those between."""
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
    r"belongs|dans|sous|sans|vers|tous|nous|ils|mais|las|los|es|más|además|entonces|aus|bis|als|das|des|les|depicts|encloses|highlights|"
    r"hosts|houses|presents|catches|touches|reads|says|sees|excels|results|looks|zeigt|muestras?|respectives?"
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

# --- numbers under a heading

_PLURAL_WORD = (
    rf"(?:bounding[ _-]?box(?:es|\(es\))|b-?boxes|box(?:es|\(es\))|r[ée]gi[oó]n(?:s|\(s\)|es)|rois|areas|rectangles|(?:re)?cuadros|cajas|zones|zonas|"
    rf"regionen|bereiche|boxen|{FAR_EAST})"
)
_RELEVANT = r"(?:relevant|useful|used|key|needed|selected|chosen|important)"
_NUMBER = r"(?:#|no\.?|nr\.?|numbers?|ids?|index|labels?|编号|番号|번호)"
COLUMN = re.compile(rf"[*_` ]*(?P<sure>{_RELEVANT}[ _])?(?!frame|label|outline)(?P<word>{WORD})(?P<number>[ _]?{_NUMBER})?(?:[ ]used)?[*_` ]*", re.I)
"""The heading of a column of box numbers."""
CELL = re.compile(r"[ ]*[*_`#]{0,3}(?P<first>\d{1,2})(?P<more>(?:[ ]?(?:,|;|&|-|and)[ ]?#?\d{1,2}){0,20})[*_`]{0,3}[ ]*", re.I)
LIST_HEAD = re.compile(
    rf"[ \t>#*_\"'-]{{0,20}}(?:[^\W_'-]+(?:[ _]|'s[ ])){{0,6}}(?P<word>{_PLURAL_WORD})(?:[ _](?:I[ ])?(?:used|needed|of[ ]interest|involved))?"
    r"[*_`\"' ]{0,5}[:=][*_` ]{0,5}\[?[ \t]*",
    re.I,
)
"""A line that ends with a word for boxes and a colon: the numbers of the lines below are boxes."""
LIST_ROW = re.compile(r"[ \t]*(?:[-*•–+][ \t]+)?[*_`#\"']{0,3}(?P<first>\d{1,2})[*_`\"']{0,3}(?=[ \t]*(?:$|,[ \t]*$|[:=–—-][ \t]|\([^)\d]))")
"""A line of such a list. ``1.`` and ``1)`` number the list itself."""
IN_LINE = re.compile(rf"{LEFT}(?P<word>{_PLURAL_WORD})[^.:;!?\n\d]{{0,30}}?(?::|[ ]-)[ ](?=\d)", re.I)
IN_LINE_ROW = re.compile(r"(?:^|[,;][ ](?:and[ ])?)(?P<first>\d{1,2})(?=[ ]?(?:[-–:=]|is|shows|contains)[ ]+[a-z])", re.I)
"""``The boxes show: 1 - a fork; 2 - a knife``."""
AMONG = re.compile(
    rf"\b(?:among|of|from|in)[ ](?:(?:all|these|those|the)[ ]){{1,2}}(?:[a-z]+[ ]){{0,2}}(?P<word>{_PLURAL_WORD}),[ ]"
    r"(?=\d{1,2}(?:, \d{1,2}){0,20},? and \d{1,2} (?:are|show|contain|have|both|depict|look|cover|seem|appear)\b)",
    re.I,
)
"""``Among the marked regions, 1 and 3 are chairs``."""
