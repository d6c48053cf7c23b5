"""Questions that point into a clip's own time: "at 00:35", "in the last 10 seconds", "at the end of the video".

Pure text work.

A part of a clip has another beginning, another end and another second 35, so such a question means something else
there. Questions about order, number and duration do not: their answer stays what it is, whether or not a part shows it.

The rule for doubtful words: does the moment that they name move when the clip is cut? "The end of the video" moves.
"The end of the match", "the first half" of a match, "before he sits down" and "the first step" do not. The words are
English and Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from lmms_patch.ask.answers import without_listed

# a video game, a video call or a film store is a thing that the clip shows, not the clip
_VIDEO = (
    r"(?:videos?|clip|film|movie|footage|recording|vlog|documentary|animation|episode)\b"
    r"(?!['’]s\b)(?![ -](?:games?|gaming|screen|frames?|calls?|players?|cards?|store|conference|image|picture))"
)
_THE_VIDEO = rf"(?:(?:the|this|that)\s+)?(?:(?!the\b|this\b)[\w-]+\s+){{0,2}}{_VIDEO}"
_OF_VIDEO = rf"\s+(?:of|in|from|during|into)\s+{_THE_VIDEO}"
# repeats have an upper bound, as in ``{1,9}``: without one, a
# prompt of 8 kB of digits took two seconds to read
_NUMBER = (
    r"(?:\d{1,3}(?:\.\d{1,9})?|(?:twenty|thirty|forty|fifty|sixty)(?:-\w+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"fifteen|half a|a few|few|several|couple of|a couple of)"
)
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|s)\b"
_TIME = rf"{_NUMBER}[\s-]*{_UNIT}(?:\s*(?:and\s+)?{_NUMBER}[\s-]*{_UNIT})?"
# with "a.m." or "p.m." behind it, it is a time of day
_CLOCK = r"(?<![\d:.])\d{1,2}(?::[0-5]\d){1,2}(?:\.\d{1,9})?(?!\d|:\d|\s*[ap]\.?\s?m\b)"
# hardly any time of day begins with 0: or 00:, but every clip begins with such a time
_FROM_ZERO = re.compile(r"(?<![\d:.])00?:[0-5]\d(?::[0-5]\d)?(?:\.\d{1,9})?(?!\d|:\d|\s*[ap]\.?\s?m\b)", re.I)
_ENDS = r"(?:beginning|start|middle|end|ending|opening|closing|outset|midpoint|conclusion|front|back end)"
_WHICH = (
    r"(?:early|earlier|initial|opening|introductory|middle|mid|central|later|latter|late|last|final|closing|concluding|ending|first|second|third|fourth|fifth|"
    r"sixth|\d{1,9}(?:st|nd|rd|th))"
)
_PARTS = r"(?:part|half|halves|portion|section|segment|third|quarter|clip|chapter|scene|minute|second)s?"
_OTHER_TIME = rf"(?!\s+(?:of|into)\s+(?!{_THE_VIDEO}))"
"""Not of something else: "the first ten minutes of the match"."""

_ENGLISH = (
    rf"\b(?:very\s+)?{_ENDS}(?:\s+and\s+{_ENDS})?\s+(?:(?:part|section|portion)\s+)?(?:of|from)\s+{_THE_VIDEO}",
    rf"\b(?:video|clip|film|movie|footage|animation)['’]s\s+(?:very\s+)?(?:{_ENDS}|{_WHICH}\s+(?:{_PARTS}|shot|frame|moments?)|intro|outro)\b",
    rf"\b{_WHICH}(?:[\s-](?:to|and|or)[\s-]\w+)?\s+{_PARTS}{_OF_VIDEO}",
    r"\bin\s+the\s+(?:early|middle|later|latter|final|opening|closing)\s+(?:part|section|portion)\b(?!\s+of\b)",
    rf"\bin\s+the\s+{_WHICH}\s+clip\b(?!\s+of\b)",
    rf"\b{_WHICH}\s+(?:shots?|frames?|moments?|stages?|phases?|images?)\s+of\s+{_THE_VIDEO}",
    rf"\b(?:what|which)\s+{_PARTS}{_OF_VIDEO}",
    rf"\b(?:intro|introduction|outro|prologue|epilogue)\s+of\s+{_THE_VIDEO}",
    rf"\b(?:early(?:\s+on)?|late|later(?:\s+on)?|midway|halfway|partway)\s+(?:in|into|through)\s+{_THE_VIDEO}",
    rf"\b\d{{1,9}}(?:\.\d{{1,9}})?\s*(?:%|percent)\s+(?:of\s+the\s+way\s+)?(?:into|through|of|in)\s+{_THE_VIDEO}",
    rf"(?<!\bin )(?<!\bof )\b(?:the|this)\s+{_VIDEO}\s+(?:begin|start|end|open|close|conclude|finish)(?:e?s|ed)?\b(?!\s+(?:up|to)\b)",
    r"\b(?:at|from|near|towards?|until)\s+the\s+(?:very\s+)?(?:beginning|start|end)\b(?![\s-]+(?:of|line|zone|point|table|button|gate|position|user)\b)",
    r"\bin\s+the\s+(?:very\s+)?beginning\b(?!\s+of\b)",
    rf"\b(?:opening|introductory|closing|concluding|ending|final|last|first)\s+(?:scenes?|frames?)\b{_OTHER_TIME}",
    r"\b(?:opening|introductory|closing|concluding|ending)\s+shots?\b",
    r"\b(?:in|at|during|from)\s+the\s+(?:very\s+)?(?:final|last|first)\s+shots?\b",
    rf"\b(?:first|last|final|initial|opening)\s+{_NUMBER}[\s-]*(?:seconds?|secs?|minutes?|mins?)(?:{_OF_VIDEO}|\b{_OTHER_TIME})",
    rf"(?<!at the )\b(?:first|initial|opening)\s+(?:minute|second)s?(?:{_OF_VIDEO}|\b{_OTHER_TIME}(?=\s*[?,.]))",
    rf"\b\d{{1,9}}(?:st|nd|rd|th)(?:\s*(?:to|and|-)\s*(?:the\s+)?\d{{1,9}}(?:st|nd|rd|th))?\s+(?:second|minute)s?(?:{_OF_VIDEO}|\b{_OTHER_TIME}(?!\s+hand\b))",
    rf"\b{_NUMBER}[\s-]*(?:second|minute|min|sec|hour)s?[\s-]+(?:mark|timestamp){_OTHER_TIME}(?:{_OF_VIDEO})?",
    rf"{_CLOCK}\s+(?:mark|timestamp)\b",
    rf"\b(?:seconds?|minutes?|mins?|secs?|far|long)\s+into\s+{_THE_VIDEO}",
    r"\b(?:at|from|around|until|between|in)\s+(?:the\s+)?(?:second|minute|timestamp|timecode)\s+\d{1,9}|\bframe\s+(?:number\s+)?\d{1,9}",
    rf"\b(?:at|around|until|since)\s+(?:about\s+|around\s+|approximately\s+)?(?:the\s+(?!\d{{1,9}}s\b))?{_TIME}{_OTHER_TIME}"
    r"(?!\s+(?:per|left|remaining|before|after|old|past|to|each|a)\b)",
    rf"\bfrom\s+{_TIME}\s+to\s+{_TIME}",
    rf"(?<!\w[ts] )(?<!\wts )\b(?:between|from)\s+(?:the\s+)?{_NUMBER}\s*(?:s\s*)?(?:and|to|-)\s*{_TIME}{_OTHER_TIME}",
    r"\bat\s+(?:what|which)\s+(?:exact\s+)?(?:seconds?|minutes?|frames?|moments?|points?)\b(?!\s+of\b)[^?]{0,120}\bvideo\b",
    rf"\b(?:what|which)\s+(?:exact\s+)?time\s+(?:of|in)\s+{_THE_VIDEO}",
    r"\b(?:what|which)\s+time\s+(?:interval|span|range|window|segment)s?\b",
    r"\btime\s?(?:stamp|code)s?\b(?!\s+(?:on|shown|displayed|overlay))",
)
_CHINESE_NUMBER = r"[\d零一二两三四五六七八九十百几]{1,9}"
_CHINESE_VIDEO = r"(?:视频|影片|短片|录像|片段|动画|纪录片)"
_CHINESE = (
    # 秒杀 is a word of its own (to beat at once), no second of the clip
    rf"第\s*(?:{_CHINESE_NUMBER}|多少)\s*秒(?!杀)",
    rf"第\s*{_CHINESE_NUMBER}\s*分钟?(?:\s*{_CHINESE_NUMBER}\s*秒)?",
    rf"(?:在|从|于|到)\s*(?:{_CHINESE_NUMBER}\s*分钟?\s*)?{_CHINESE_NUMBER}\s*秒(?!之?内|钟?之内)",
    rf"{_CHINESE_NUMBER}\s*分钟?\s*{_CHINESE_NUMBER}\s*秒\s*(?:处|时|左右|之?前|之?后|到|至)|{_CHINESE_NUMBER}\s*秒\s*(?:处|到|至)",
    # 赛前, 之前 and 以前 say what comes before something else, not the first seconds
    rf"(?<!赛)(?<!场)(?<!之)(?<!以)(?:前|最后|最初|开头)\s*{_CHINESE_NUMBER}\s*(?:秒|分钟)(?!之?内)",
    rf"{_CHINESE_VIDEO}\s*(?:的|刚|一|快|即将|快要|最){{0,2}}(?:开头|开始|开端|结尾|结束|末尾|尾声|前半|后半|前段|后段|前部|后部|中段|中期|中间(?:部分|段))",
    rf"{_CHINESE_VIDEO}\s*(?:的)?最后(?!一?[个位次名件步种项]|出现)",
    rf"{_CHINESE_VIDEO}\s*(?:的)?(?:哪|第{_CHINESE_NUMBER})(?:一)?(?:个)?(?:部分|段|片段)",
    r"[前后]半(?:段|部分)|片[头尾]|(?:在|从|到)(?:最|一)?(?:开头|结尾|末尾)(?!字)|(?:开头|结尾)(?:处|部分|时)",
    r"(?:哪个|什么|哪段)\s*时间[段点戳]|时间戳",
)
_WORDS = re.compile("|".join(f"(?:{words})" for words in (*_ENGLISH, *_CHINESE)), re.I)

_CLOCKED = re.compile(
    rf"\b(?:at|from|between|around|until|till|before|after|to|during|time(?:\s+of)?)\s+(?:about\s+|around\s+|the\s+time\s+)?{_CLOCK}"
    rf"|[在从于到]\s*{_CLOCK}|{_CLOCK}\s*(?:[-–—~]|到|至)\s*{_CLOCK}|{_CLOCK}\s*(?:处|时|左右)",
    re.I,
)
_SHOWN_CLOCK = re.compile(
    r"clock\b|\bwatch(?:es)?\s+(?:show|read|say|display)|\balarm|\bscore|\bratio\b|\baspect\b|\bodds\b|\b(?:match|game|local)\s+time|\bmidnight|\btimer\b"
    r"|\bstop\s?watch|凌晨|比分|闹钟|手表|时钟|比例",
    re.I,
)
"""A clock or a score in the scene: all such numbers belong to what the video shows, even "00:35"."""
_OTHER_CLOCK = re.compile(
    rf"{_SHOWN_CLOCK.pattern}|\bschedul|timetable|\btrain\b|\bbus\b|\bflight|\bdepart|\barriv|\bverse|\bchapter\b|\bbible|\bpsalm|\bgospel|\bdaily\b|\broutine"
    r"|\bwakes?\b|\bwoke|\bgets?\s+up|\bgo(?:es)?\s+to\s+(?:bed|sleep|work)|\bbreakfast|\blunch|\bdinner|\bschool\b|\bclass(?:es)?\b|\bmorning|\bafternoon"
    r"|\bevening|\bnoon\b|\bmeeting|\bappointment|\bquarter|\bremaining|\bteams?\b.*\bovertake|上午|下午|早上|晚上|中午|傍晚|火车|列车|航班|起床",
    re.I,
)
"""Or a time of day, or a verse: "8:30" belongs to what the video shows."""
_OTHER_MINUTE = re.compile(
    r"\bgoal|\bscor|\bmatch\b|\bfootball|\bsoccer|\bpenalt|\breferee|\bkick|进了?球|比赛|球员|射门", re.I
)
_OF_MATCH = re.compile(r"\d(?:st|nd|rd|th)\s+minutes?$|分钟?$", re.I)

_OPTION_PLACE = re.compile(
    r"(?:(?:only|in|at|during|near|towards?|from|across|about|around|the|very)\s+)*"
    rf"(?:{_ENDS}(?:\s+part)?|{_WHICH}(?:\s+(?:to|and)\s+{_WHICH})?\s+{_PARTS}|early|middle|later?|throughout|the\s+(?:entire|whole)(?=\s+(?:video|clip)))"
    rf"(?P<video>\s+(?:(?:of|in)\s+)?{_THE_VIDEO})?"
    rf"|{_CHINESE_VIDEO}?的?(?:开头|开始|中间|中段|结尾|结束|前半段|后半段|最后|始终)(?:部分|时)?",
    re.I,
)
_OPTION_TIME = re.compile(
    rf"(?:(?:at|from|between|around|about|during)\s+)*(?:the\s+)?(?:{_CLOCK}|(?P<length>{_TIME})|{_NUMBER}(?=\s*(?:[-–—~]|to|and)))"
    rf"(?P<range>\s*(?:[-–—~]|to|and|until)\s*(?:{_CLOCK}|{_TIME}))?(?:\s+(?:mark|into\s+{_THE_VIDEO}|(?:of|in)\s+{_THE_VIDEO}))?|第?\s*\d{{1,9}}\s*秒?\s*[-–—~到至]\s*第?\s*\d{{1,9}}\s*秒",
    re.I,
)
_ASKS_WHEN = re.compile(
    r"\bwhen\b|\bwhat\s+time|\b(?:which|what)\s+(?:part|time|moment|segment|interval|period|second|section|portion|clip|range)|\blocali[sz]e|\blocate\b|\btime\s?stamp"
    r"|什么时候|何时|哪个|哪段|哪一段|几秒|时间段|什么时间",
    re.I,
)
_ASKED_TIMES = re.compile(
    r"\b(?:start|starting|begin|beginning)(?:\s+times?|\s+frames?)?\s+and\s+(?:the\s+)?end(?:ing)?\s+(?:are\s+)?(?:times?|time\s?stamps?|seconds?|frames?)\b"
    r"|(?:开始|起始|起止)(?:时间|帧)?\s*(?:和|与|及)\s*(?:结束|终止)(?:时间|帧)|起止时间",
    re.I,
)
"""What a prompt asks for where the answer is a stretch of the clip, as in temporal grounding."""
_ENDS_SENTENCE = re.compile(r"(?<!\s)\s*\n+\s*|(?<=[.!?:])\s+|(?<=[。！？])\s*|(?<=\D：)\s*")
_IS_QUESTION = re.compile(r"[?？][\s\"'”’)\]]*$")
POINTS = "its question points into the clip's own time"
"""Why a doc is left out of an index in time, as records say it; what points there may follow."""
_LETTER = re.compile(r"^\(?[A-J][.):]\s*")


def points_into_clip(question: str, options: Sequence[str] = ()) -> str:
    """Return the words of a question, or of its options, that point into the clip's own time; empty where none do.

    Options count where at least half of them (and two) are a time or a part of the clip, as in temporal grounding. A
    bare time, such as "10:45" or "at 35 seconds", counts only where the question asks for a moment and does not speak
    of a clock, a timetable or the like.

    Args:
        question: the question, with or without its options.
        options: the option texts, with or without their letters.

    >>> points_into_clip("What does the man hold in the last 10 seconds?")
    'last 10 seconds'
    >>> points_into_clip("What does the man hold before he sits down?")
    ''
    >>> points_into_clip("When does she open the door?", ["A. 00:10 - 00:20", "B. 00:30 - 00:40"])
    '00:10 - 00:20'
    """
    text = " ".join(unicodedata.normalize("NFKC", question).split())
    return _in_words(text) or _in_options(
        text, [_LETTER.sub("", unicodedata.normalize("NFKC", option).strip()).strip(" .。") for option in options]
    )


def asked_times(prompt: str) -> str:
    """Return the words of a prompt that ask for a start and an end in the clip's own time; empty where none do.

    >>> asked_times("When does she sit down? Please return its start time and end time.")
    'start time and end time'
    """
    match = _ASKED_TIMES.search(without_listed(prompt))
    return match[0] if match else ""


def questions_in(prompts: Sequence[str], options: Sequence[Sequence[str]] = ()) -> list[str]:
    r"""Return what each prompt asks: without its listed options, and without the instructions that it shares with others.

    A sentence is an instruction where at least half of the prompts (and two) hold it, whatever numbers are in it, and
    it is no question. A prompt that holds instructions alone, beside its options, is returned without its options: its
    question is what the others ask, too.

    Args:
        prompts: of all docs of a task, since one prompt alone does not say what it shares.
        options: the option texts of each doc, which its prompt may list without letters; none are known where empty.

    >>> questions_in(["Watch to the end of the video.\nWho waves?\nAnswer briefly.", "Watch to the end of the video.\nWho sits?\nAnswer briefly."])
    ['Who waves?', 'Who sits?']
    """
    plain = [without_listed(prompt) for prompt in prompts]
    sentences = [sentences_of(prompt) for prompt in plain]
    shared = shared_sentences(plain)
    listed = [
        {skeleton(one) for option in some for one in sentences_of(option)} for some in options or [()] * len(plain)
    ]
    sentences = [
        [one for one in some if skeleton(one) not in known] for some, known in zip(sentences, listed, strict=True)
    ]
    own = [[one for one in some if skeleton(one) not in shared or _IS_QUESTION.search(one)] for some in sentences]
    return [" ".join(some) if any(map(skeleton, some)) else prompt for some, prompt in zip(own, plain, strict=True)]


def shared_sentences(prompts: Sequence[str], share: float = 0.5) -> frozenset[str]:
    """Return the sentences (``skeleton``) that at least so large a share of some prompts hold, and at least two."""
    counts = Counter(one for prompt in prompts for one in {skeleton(sentence) for sentence in sentences_of(prompt)})
    return frozenset(one for one, count in counts.items() if count >= max(2, share * len(prompts)))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text; a line ends a sentence, too, and so does a colon."""
    return [one for one in _ENDS_SENTENCE.split(text.strip()) if one]


def skeleton(sentence: str) -> str:
    """Return a sentence by which others are the same: in lower case, letters alone; each number is one mark."""
    return re.sub(r"\d+(?:\.\d+)?", "#", re.sub(r"[^\w.]|_", "", sentence.lower())).strip(".")


def _in_words(text: str) -> str:
    for match in _WORDS.finditer(text):
        if not (_OF_MATCH.search(match[0]) and _OTHER_MINUTE.search(text)):
            return match[0].strip()
    for clocks, others in ((_FROM_ZERO, _SHOWN_CLOCK), (_CLOCKED, _OTHER_CLOCK)):
        clocked = clocks.search(text)
        if clocked and not others.search(text):
            return clocked[0].strip()
    return ""


def _in_options(text: str, options: Sequence[str]) -> str:
    asks_when = bool(_ASKS_WHEN.search(text))
    asks_time = asks_when and not _OTHER_CLOCK.search(text)
    pointing = [option for option in options if _is_part(option, asks_when) or (asks_time and _is_time(option))]
    return pointing[0] if len(pointing) >= max(2, len(options) / 2) else ""


def _is_part(option: str, asks_when: bool) -> bool:
    """Return whether an option is a part of the clip.

    "middle" alone only where the question asks for a moment, since else it may be a place.
    """
    match = _OPTION_PLACE.fullmatch(option)
    return bool(option) and match is not None and (asks_when or match["video"] is not None)


def _is_time(option: str) -> bool:
    """Return whether an option is a moment or a stretch of time; "20 minutes" alone may be a duration."""
    match = _OPTION_TIME.fullmatch(option)
    return match is not None and (
        match["length"] is None
        or match["range"] is not None
        or re.match(r"at\b|around\b|between\b|from\b", option, re.I) is not None
    )
