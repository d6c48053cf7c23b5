"""Mentions of options: option texts and questions that name other options by their place, letter or number.

Moved in a circle, such options mean something else ("All of the above", "Both A and B"), and such questions ask
something else ("Why is option B wrong?"). Letters and places of the picture, of the question's statements and of the
world stay: "above the table", "Vitamin A and D", "I and II".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

PLACES = "an option speaks of those above or below it"
LETTERS = "an option names others by their letters"
NUMBERS = "an option names others by their numbers"

_OPTIONS = r"(?:answers?|options?|choices?|alternatives?|statements?|answer choices|responses?)"
_WHICH = r"(?:all|none|no\s+one|any|both|neither|either|each|every|no|nothing|everything|some|most|except)"
_PART = rf"(?:{_WHICH}|one|two|three|combinations?|mix(?:ture)?)"
_COUNT = r"(?:one|two|three|four|five|\d)"
_PLACE = r"(?:above|below|previous|preceding|foregoing|aforementioned|following)"
_TAIL = (
    rf"(?=\W*$|\s*[,;:./(]|[\s-]*(?:mentioned|listed|stated|given|named|{_OPTIONS}|ones|is|are|was|were|apply"
    r"|applies|may|can|could|because|since)\b)"
)
_SEEN = r"(?:pictures?|images?|photos?|figures?|tables?|graphs?|charts?|maps?|diagrams?|texts?|passages?|sentences?|rows?|numbers?|ground)"
"""What stands above or below in a picture, or is one."""
_PLACES = [
    rf"^\W*{_WHICH}(?:\s+(?:of|the|these|those|other|given|{_COUNT}|{_OPTIONS}))*\s+{_PLACE}\b{_TAIL}",
    rf"\b{_PART}\s+of\s+(?:(?:the|these|those|{_COUNT}|{_OPTIONS})\s+)*{_PLACE}\b{_TAIL}",
    rf"^\W*(?:all|none|both|neither|any)\s+of\s+the\s+above[\s-]+(?!{_SEEN}\b)[a-z]",
    rf"^\W*{_WHICH}\s+(?:is|are)\s+(?:correct|right|true|wrong|false|listed|mentioned|given)\s+{_PLACE}\W*$",
    rf"\bthe\s+above\s+(?:is|are|all|{_OPTIONS})\b|\b(?:same\s+as\s+(?:the\s+)?|and\s+the\s+)above\W*$",
    # Chinese, Japanese, Korean
    r"(?:^|[,，;；。])\W{0,9}(?:以上|上述|上列|上面|以下)的?(?:所有|全部|各|几|[一二两三四])?(?:个|種|种)?(?:选项|選項|答案|说法|說法|项|項|者)?"
    r"(?:[都皆均全无無没沒任之]|不[是对對正]|是|正确|正確|$)",
    r"^\W*(?:所有|全部)以上|^\W*前[一二两三四]?(?:项|項|者|个选项|個選項)",
    r"^\W*(?:上記|以上|上述)の?(?:すべて|全て|全部|いずれ|どれ|両方|選択肢)",
    r"^\W*(?:위|상기)(?:의|에|에\s*있는)?\s*(?:모든\s*(?:것|답|보기|항목)|모두|전부|어느\s*것|둘\s*다|보기)|^\W*(?:모두|전부)\s*위",
    # Spanish, Portuguese, French, Italian, German, Dutch: a word for all or none, then one for what stands above
    r"^\W*(?:tod[ao]s|ningun[ao]|ambas|ambos|cualquiera|algun[ao])\s+(?:de\s+)?(?:l[ao]s\s+)?(?:opciones\s+|respuestas\s+|dos\s+)*"
    r"(?:anterior(?:es)?\b(?=\W*$|\s+(?:es|son|está))|(?:de\s+)?arriba\W*$)",
    r"^\W*(?:tod[ao]s|nenhum[ao]?|ambas|ambos|qualquer)\s+(?:(?:uma\s+)?d?[ao]s\s+)?(?:opções\s+|alternativas\s+|respostas\s+|duas\s+)*"
    r"(?:anteriores|acima)\b(?=\W*$|\s+(?:est|são|é))",
    r"^\W*(?:toutes?|tous|aucune?|les\s+deux|l'une)\s+(?:(?:d')?(?:des|de|les|ces)\s+)*(?:réponses\s+|options\s+|choix\s+|propositions\s+)?"
    r"(?:ci-dessus|précédent(?:e|es|s)?\W*$|qui\s+précèdent)",
    r"^\W*(?:tutt[ei]|nessun[ao]|entramb[ei])\s+(?:le\s+|i\s+|delle\s+|dei\s+|quelle\s+)?(?:risposte\s+|opzioni\s+)?(?:precedenti\W*$|(?:di\s+cui\s+)?sopra\W*$)",
    r"^\W*(?:alle[sr]?|keine?[sr]?|beide|nichts|eines?)\s+(?:der\s+|von\s+|die\s+|den\s+|davon\s+)*"
    r"(?:oben\s*(?:genannt|stehend|angegeben|aufgeführt)|obige|vorherige[nr]?\W*$|vorstehend|vorgenannt)",
    r"^\W*(?:al\s+het|alle|geen|beide)\s+(?:van\s+)?(?:de\s+|het\s+)?bovenstaande",
    # Vietnamese, Polish, Turkish, Indonesian and Malay
    r"^\W*(?:tất\s+cả|không|cả\s+\w+)\b.*\b(?:đáp\s+án|phương\s+án|lựa\s+chọn|câu|ý|điều)\b.*\btrên\b|^\W*tất\s+cả\s+(?:các\s+)?(?:điều\s+)?(?:ở\s+)?trên\W*$",
    r"^\W*(?:wszystkie|żadn[ea]|obie)\s+(?:z\s+)?(?:odpowiedzi\s+)?(?:powyższ|poprzedni)",
    r"^\W*yukarıdakiler",
    r"^\W*(?:semua|tidak\s+ada|bukan)\b(?:\s+(?:satu\s+pun|dari|yang|jawaban|pilihan|opsi))*\s+(?:di\s+atas|tersebut\s+di\s+atas)(?=\W*$|\s+(?:benar|salah|betul))",
    # Russian and Ukrainian, Arabic, Persian, Hindi
    r"вышеперечислен|вышеуказан|перечисленн\w+\s+выше|^\W*(?:вс[её]|ни\s+од\w+|оба|обе)\s+(?:из\s+)?предыдущи[ех]\s+(?:вариант|ответ)",
    r"(?:جميع|كل|لا\s+شيء|أي|ليس)\s+(?:\w+\s+)?(?:مما|ما)\s+(?:سبق|ذكر)|(?:همه|هیچکدام|هیچ\s*یک)\s+.*(?:بالا|فوق)",
    r"उपरोक्त|उपर्युक्त",
]
_ABOVE = re.compile("|".join(_PLACES), re.IGNORECASE)

_ORDINAL = r"(?:first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th)"
_NUMBERED = re.compile(
    rf"^\W*(?:(?:only|both|all|either|neither|of|the)\s+)*(?:{_ORDINAL}(?:\s*(?:,|and|or|&)\s*(?:the\s+)?{_ORDINAL})*(?:\s+{_COUNT})?\s+{_OPTIONS}(?=\W*$|\s+(?:is|are|only)\b)|"
    rf"(?:options?|choices?)\s*(?:no\.?|number|#)?\s*\d\b)",
    re.IGNORECASE,
)

_WORDS = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+|[\u0400-\u04ff]+|\d+|[^\W\d_]|[,、;&/+]")
_FRAME = frozenset(
    """and or nor both only either neither not all except but apart from besides same as is are be correct true right wrong false incorrect just
    option options choice choices answer answers statement statements the of well
    y o u e et ou und oder en og och i oraz lub ve và hoặc cả hai dan atau son correctas correcta sont correctes sind richtig sono corrette são
    corretas beide les deux ambas entrambe tylko nur solo sólo seulement đúng chỉ , 、 ; & / +""".split()  # noqa: SIM905 - a list of so many words is no easier to read
    + list("和与與或及跟且同都对對均是正确確选選项項只有答案皆两者兩との両方もや多が正しい와과랑및모두만와하고")
    + ["и", "или", "оба", "только", "верны", "ни"]
)
"""Words and marks that stand beside the letters of options where a text consists of nothing else."""
# options of Russian docs are lettered А, Б, В, Г, Д, Е
_CYRILLIC = str.maketrans("АБВГДЕабвгде", "ABCDEFabcdef")
_BY_WORD = re.compile(
    r"\b(?:options?|choices?)\s*[\"'(]?([A-Z])\b(?!')(?:\W{0,3}(?:,|&|/|\b(?:and|or|to)\b)\W{0,3}([A-Z])\b)*",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^\W*(?i:both|neither|either)\W+([A-Z])\W+(?i:and|or|nor)\W+([A-Z])\b")


def in_options(texts: Sequence[str]) -> str:
    """Return why the options of a doc cannot change places; "" where no option names another.

    A letter names an option if that option exists, is another one, and does not itself consist of letters or hold that
    very letter: in "A", "B", "AB", "O" the letters are blood groups, and in "A only", "B only", "A and B" they are the
    question's statements.
    """
    # full-width letters, as Chinese texts have them, become plain
    plain = [unicodedata.normalize("NFKC", text) for text in texts]
    if any(_ABOVE.search(text) for text in plain):
        return PLACES
    if any(_NUMBERED.search(text) for text in plain):
        return NUMBERS
    named = [_letters(text) for text in plain]
    for place, letters in enumerate(named):
        others = [ord(letter) - ord("A") for letter in letters]
        if not others or place in others or max(others) >= len(plain):
            continue
        if any(not named[other] and not _holds(plain[other], chr(ord("A") + other)) for other in others):
            return LETTERS
    return ""


def _holds(text: str, letter: str) -> bool:
    """Return whether a text is some letter alone, or holds a given letter as a word: then that letter is content."""
    return re.fullmatch(r"\W*[A-Za-z]\W*", text) is not None or re.search(rf"\b{letter}\b", text) is not None


def _letters(text: str) -> set[str]:
    """Return the letters that an option's text may name others by, in upper case: those of a text of letters, or behind "option", or "both"."""
    if match := _PAIR.search(text):
        return {match[1], match[2]}
    # "A > B" orders what the picture names
    words = [] if re.search(r"[-–→<>=~:|]", text) else _WORDS.findall(text)
    letters = ""
    framed, upper = bool(re.search(r"\([A-Za-z]\)", text)), any(word.isascii() and word.isupper() for word in words)
    for place, word in enumerate(words):
        inside = 0 < place < len(words) - 1
        if word.casefold() in _FRAME and (
            len(word) > 1 or not word.isascii() or not word.isalpha() or (inside and upper and word.islower())
        ):
            framed = True
            continue
        word = word.translate(_CYRILLIC)
        # capitals in the order of the alphabet ("ACD") are several
        # options; other words of capitals ("NASA") are content
        if not (word.isascii() and word.isalpha()) or (
            len(word) > 1 and (not word.isupper() or list(word) != sorted(set(word)))
        ):
            break
        letters += word
    else:
        if (
            letters
            and len(set(letters.upper())) == len(letters)
            and (letters.isupper() or (framed and len(letters) > 1))
        ):
            return set(letters.upper())
    if match := _BY_WORD.search(text):
        return set(re.findall(r"\b[A-Z]\b", match[0]))
    return set()


_SENTENCE = re.compile(r"(?<=[.?!])\s+|(?<=[。？！])|\n")
_INSTRUCTION = re.compile(
    r"\b(?:answer\s+(?:with|by|using|only|directly)|respond|reply|choose|select|pick|letters?|output|format|such\s+as|like\s+['\"]|example|boxed)\b|e\.g|"
    r"answer\s+is\b|请|請|回答|字母|选择|選擇",
    re.IGNORECASE,
)
"""Words by which a sentence says how to answer. Letters in such a sentence are examples, and name no option."""
_WORD_BEFORE = re.compile(
    r"(?:^|[,;:\s])(?:in|than|is|are|as|of|with|from|to|between|do|does|did|how|why|like|unlike|without|both|compare|distinguish(?:es)?|contradicts?|and|or)\s*$",
    re.IGNORECASE,
)
_JOINS = ("and", "or", "to", "through")
_REACH = 40
"""How many characters before a letter in brackets may hold the word of ``_WORD_BEFORE``."""
_ASKED_ORDINAL = re.compile(
    rf"\bof\s+the\s+{_ORDINAL}\s+{_COUNT}\s+(?:options|choices|answers)\b|"
    rf"\b{_ORDINAL}\s+(?:option|choice|answer)\s+(?:is|were|was)\s+(?:not\s+)?(?:right|wrong|true|false|correct|incorrect)\b",
    re.IGNORECASE,
)


def in_question(question: str, count: int) -> bool:
    """Return whether a question names some of its options by letter or number.

    A sentence that names all of them, or says how to answer, asks the same in every order. A letter in brackets behind
    a noun names something in the picture ("points (A) and (C)", "current (A)").

    Args:
        question: the question and whatever stands around the options, without these and their letters.
        count: how many options there are.
    """
    labels = {chr(ord("A") + place) for place in range(count)}
    for sentence in _SENTENCE.split(unicodedata.normalize("NFKC", question)):
        if _INSTRUCTION.search(sentence) and not re.search(
            r"\bbetween\s+(?:options|choices)\b", sentence, re.IGNORECASE
        ):
            continue
        if _ASKED_ORDINAL.search(sentence):
            return True
        named = {letter for match in _BY_WORD.finditer(sentence) for letter in re.findall(r"\b[A-Z]\b", match[0])}
        named |= set(re.findall(r"(?:选项|選項|選択肢)\s*([A-Z])", sentence)) | _in_brackets(sentence)
        if named and named < labels:
            return True
    return False


def _in_brackets(sentence: str) -> set[str]:
    """Return the letters in brackets that follow a preposition, a verb or the like.

    Those joined to a noun's by "and" are the noun's.
    """
    out: set[str] = set()
    of_noun, end, first = False, -1, len(sentence) - len(sentence.lstrip())
    for match in re.finditer(r"\(([A-Z])\)", sentence):
        between = re.findall(r"\w+", sentence[end : match.start()]) if end >= 0 else ["-"]
        joined = not between or (between[0] in _JOINS and between[1:] in ([], ["and"], ["or"]))
        before = sentence[max(0, match.start() - _REACH) : match.start()]
        of_noun = of_noun if joined else not (_WORD_BEFORE.search(before) or match.start() <= first)
        if not of_noun:
            out.add(match[1])
        end = match.end()
    return out
