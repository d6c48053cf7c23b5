"""CIDEr-D of single captions, for metrics that exist only for a whole corpus. Pure Python.

Vedantam, Zitnick and Parikh, CIDEr: Consensus-based Image Description Evaluation, CVPR 2015
(https://arxiv.org/abs/1411.5726), §4. The numbers are those of the scorer of COCO captions (``pycocoevalcap``).
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Sequence

# as CIDEr-D is defined: scores of other values would not compare with published ones
MAX_N = 4
SIGMA = 6.0
SCALE = 10.0

NGram = tuple[str, ...]

_DROPPED = frozenset("'`.?!,:-;\"‘’“”–—…")
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,}|\d+(?:[.,:/]\d+)+|\w+(?:[-'’/]\w+)*|\S")
_CLITIC = re.compile(r"^(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))$")


def tokenize(text: str) -> list[str]:
    """Return the words of a caption, nearly as the tokenizer of COCO captions gives them, but without Java.

    Words are in lower case, punctuation is dropped, clitics are split off ("man's" is two words), hyphenated words stay
    whole. Brackets become words (``-lrb-``), as in the original. Two differences remain: abbreviations with a single
    full stop lose it ("mr"), and colloquial contractions ("gonna") stay whole.

    >>> tokenize("A man's black-and-white dog, asleep.")
    ['a', 'man', "'s", 'black-and-white', 'dog', 'asleep']
    """
    words = []
    for token in _TOKEN.findall(text.lower()):
        clitic = _CLITIC.match(token)
        parts = ["can", "not"] if token == "cannot" else list(clitic.groups()) if clitic else [token]
        words += [_BRACKETS.get(part, part).replace("’", "'") for part in parts if part not in _DROPPED]
    return words


_KEPT = 50_000
"""How many captions keep their vector in memory: the same references are needed again and again."""


Vector = tuple[list[dict[NGram, float]], list[float], int]
"""The tf-idf weights of a caption: for each n the weight of every n-gram in it, for each n the length of that vector, and the number of bigrams."""


class CiderD:
    """Scorer of single captions by CIDEr-D, with the document frequencies of a fixed corpus of references.

    The weight of an n-gram k in a caption is g_k = (how often it is there) · log(N / df_k): N is the number of
    images, df_k the number of images with k in any reference, at least 1. For a caption c with references s_1 ... s_m,

        CIDEr-D_n = 10/m · Σ_j  exp(−(l(c) − l(s_j))² / 2σ²) · min(g(c), g(s_j)) · g(s_j) / (‖g(c)‖ ‖g(s_j)‖)

    and CIDEr-D is the mean over n = 1 ... 4, with σ = 6: 0 (no n-gram shared) to 10. The length l counts bigrams,
    as in ``pycocoevalcap``: words less one. A corpus of one image gives 0 everywhere, since all log(N / df) are 0.

    Texts are split at blanks: tokenize them first, all in the same way.

    >>> corpus = CiderD([["a red bus"], ["a cat"]])
    >>> corpus.score("a red bus", ["a red bus"]) > corpus.score("a bus", ["a red bus"]) > corpus.score("a", ["a red bus"])
    True
    """

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        """Count document frequencies.

        Args:
            references: of each image, its reference captions.

        Raises:
            ValueError: there is no image.
        """
        if not references:
            raise ValueError("CIDEr-D needs the references of at least one image; got none")
        counts = Counter(
            ngram for captions in references for ngram in {one for caption in captions for one in _ngrams(caption)}
        )
        self._unseen = math.log(len(references))
        self._idf = {ngram: self._unseen - math.log(count) for ngram, count in counts.items()}
        self._vector = functools.lru_cache(_KEPT)(self._weigh)

    def score(self, caption: str, references: Sequence[str]) -> float:
        """Return CIDEr-D of a caption.

        Args:
            caption: the tokens, separated by blanks; an empty caption scores 0.
            references: of the same image, in the same form; at least one.

        Returns:
            The score, 0 to 10.

        Raises:
            ValueError: there is no reference.
        """
        if isinstance(references, str) or not references:
            raise ValueError(f"CIDEr-D needs a list of at least one reference; got {references!r}")
        candidate = self._vector(caption)
        total = sum(_similarity(candidate, self._vector(reference)) for reference in references)
        return SCALE * total / (MAX_N * len(references))

    def _weigh(self, caption: str) -> Vector:
        counts = _ngrams(caption)
        weights = [
            {ngram: count * self._idf.get(ngram, self._unseen) for ngram, count in counts.items() if len(ngram) == n}
            for n in range(1, MAX_N + 1)
        ]
        norms = [math.sqrt(sum(weight * weight for weight in of_n.values())) for of_n in weights]
        return weights, norms, max(0, len(caption.split()) - 1)


def _ngrams(caption: str) -> Counter[NGram]:
    """Count each n-gram of 1 to 4 words in a caption."""
    words = caption.split()
    return Counter(tuple(words[i : i + n]) for n in range(1, MAX_N + 1) for i in range(len(words) - n + 1))


def _similarity(candidate: Vector, reference: Vector) -> float:
    """Return the sum over n of the clipped cosines, times the length penalty."""
    total = 0.0
    for mine, theirs, norm, other in zip(candidate[0], reference[0], candidate[1], reference[1], strict=True):
        # a caption of few words has no n-grams of four, and one of common words alone has no weights
        if norm and other:
            shared = sum(min(weight, theirs[one]) * theirs[one] for one, weight in mine.items() if one in theirs)
            total += shared / (norm * other)
    apart = candidate[2] - reference[2]
    return total * math.exp(-apart * apart / (2 * SIGMA * SIGMA))
