"""What the docs of a task ask: prompts, golds, options, clusters, and the plan made of them before any is answered.

The plan is made from the docs alone, so it is the same on every rank.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.answers import Answer, Asked
from lmms_patch.ask.boxes import within
from lmms_patch.ask.captions import CiderD, tokenize
from lmms_patch.ask.references import Doc, Plan, plan, questions
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.errors import OptionError
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Known
from lmms_patch.harness.wrap.scorer import said
from lmms_patch.runs.schema import FIELD
from lmms_patch.runs.scoring import Scalar, plain
from lmms_patch.stats.forms import is_whole
from lmms_patch.text import log

_MANY = 5_000
"""Reading more docs than this shows a progress bar."""
SHORT = 64
"""Characters of a doc's field that is kept in the samples table, at most."""


class Golds:
    """The docs of a wrapped task, as far as known without a scorer.

    Attributes:
        docs: the evaluated docs; empty until the plan is made.

    Args:
        known: the task.
    """

    def __init__(self, known: Known) -> None:
        self.known, self.docs = known, list[Doc]()
        self._ids: Sequence[int] | None = None
        self._asked: dict[int, Asked] = {}
        self._plan: Plan | None = None
        self._unread = True
        self._lock = threading.RLock()

    def asked(self, doc_id: int) -> Asked | None:
        """Return what a doc asks; None where it was not read."""
        return self._asked.get(doc_id)

    def answer(self, doc_id: int) -> Answer | None:
        """Return how a doc is to be answered; None where unknown."""
        return None if self.plan is None else self.plan.answers.get(doc_id)

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together. Called before the first doc is scored."""
        self._ids, self._unread = list(doc_ids), True
        self.gold_shares.cache_clear()

    @property
    def plan(self) -> Plan | None:
        """The plan; None, with a warning, where the docs cannot be read."""
        # docs are scored in several threads
        with self._lock:
            if self._unread:
                self._unread, self._plan = False, None
                try:
                    self._plan = self._make()
                except Exception as error:
                    log().warning(
                        f"{self.known.spec.name}: its docs cannot be read, so it has no chance floor and no ceiling: {one_line(error)}"
                    )
            return self._plan

    def _make(self) -> Plan:
        options, self.docs = self.known.spec.options, self.read(self._ids)
        whole = is_whole(options.form(self.known.primary))
        made = plan(self.docs, declared=options.format, clusters_whole=whole, seed=options.seed)
        # a part of the docs must not pass for the whole benchmark
        return dataclasses.replace(made, all_docs=len(self.known.scored_rows))

    def read(self, doc_ids: Sequence[int] | None = None) -> list[Doc]:
        """Read the docs as a plan needs them.

        What a doc asks is kept: prompt templates are slow, and docs are read for wrong images, for references and for folds.

        Args:
            doc_ids: which docs; None stands for all of the split.
        """
        rows, options, name = self.known.scored_rows, self.known.spec.options, self.known.spec.name
        ids = list(range(len(rows))) if doc_ids is None else doc_ids
        named = options.cluster, options.group or options.cluster, options.stratum
        values = []
        # row by row, since rows may hold images
        for i in tqdm(ids, desc=f"{name}: golds", disable=len(ids) < _MANY):
            row = rows[i]
            self._asked[i] = self._asked.get(i) or self._read(row)
            values.append((row.get("question"), *(field(row, names) for names in named)))
        texts = questions([self._asked[i].prompt for i in ids], [question for question, *_ in values])
        return [
            Doc(i, self._asked[i], question, *of_doc)
            for i, question, (_, *of_doc) in zip(ids, texts, values, strict=True)
        ]

    def _read(self, row: Any) -> Asked:
        """Read what a doc asks: its prompt, gold and options."""
        base, named = self.known.base, self.known.spec.options.choices
        try:
            prompt = base.doc_to_text(row)
        except Exception:
            # the prompt needs the image, which these rows lack: options are then known from the golds alone
            prompt = ""
        choices = texts_of(base.doc_to_choice(row) if self.known.by_index else within(row, named) if named else None)
        return Asked(prompt if isinstance(prompt, str) else "", self.target(row), choices or (), self.known.by_index)

    def target(self, row: Any) -> Any:
        """Return the gold of a row."""
        named = self.known.spec.options.gold
        return within(row, named) if named else self.known.base.doc_to_target(row)

    def as_results(self, doc_id: int, text: str) -> list[Any]:
        """Return an answer to a doc in the scorer's form.

        That is a text; or for multiple choice one loss per option (the host calls them log-likelihoods), lowest for the
        answer.
        """
        if not self.known.by_index:
            return [text]
        answer = self.answer(doc_id)
        options = range(0 if answer is None else len(answer.options))
        return [(0.0 if str(i) == text else 100.0, str(i) == text) for i in options]

    @functools.lru_cache  # noqa: B019 - one object a task
    def gold_shares(self, stratum: str) -> Mapping[str, float]:
        """Return how often each answer is the gold of the docs of a stratum."""
        assert self.plan is not None
        golds = [said([self.plan.answers[one].gold]) for one, of in self.plan.strata.items() if of == stratum]
        return {gold: count / len(golds) for gold, count in Counter(golds).items()}


def caption_score(golds: Golds) -> Callable[[Any], Scalar]:
    """Return a scorer of caption items by CIDEr-D. Document frequencies come from the references of all evaluated docs.

    We use our own tokens (``captions.tokenize``); the corpus metrics use the official tokenizer.
    """

    @functools.cache
    def corpus() -> CiderD:
        if golds.plan is None:
            raise ValueError("the references of the captions cannot be read")
        return CiderD([list(map(_tokens, answer.golds)) for answer in golds.plan.answers.values()])

    def score(item: Any) -> Scalar:
        # a doc with a single reference may have it as a text
        references = [item["answer"]] if isinstance(item["answer"], str) else item["answer"]
        return corpus().score(_tokens(item["pred"]), list(map(_tokens, references)))

    return score


@functools.lru_cache(maxsize=200_000)
def _tokens(text: str) -> str:
    return " ".join(tokenize(text))


# --- fields of a doc ------------------------------------------------------------------------------


def field(row: Any, names: str | list[str] | None) -> Any:
    """Return the value of a doc's field, or the values of several fields as a single key.

    None where the doc lacks one, or none is named.

    A value that is not a plain number or text stands as its JSON.
    """
    if names is None:
        return None
    # nan becomes None
    values = [plain(within(row, name)) for name in ([names] if isinstance(names, str) else names)]
    if None in values:
        return None
    simple = [value if isinstance(value, (str, int)) else json.dumps(value, sort_keys=True) for value in values]
    return simple[0] if len(simple) == 1 else " / ".join(map(str, simple))


def texts_of(choices: Any) -> tuple[str, ...] | None:
    """Return the texts of options; None where ``choices`` holds no options.

    Options are a list, the values of a mapping, or the text of either; an empty text means no options.

    >>> texts_of(["a cat", "a dog"]) == texts_of({"A": "a cat", "B": "a dog"}) == texts_of('["a cat", "a dog"]') == ("a cat", "a dog")
    True
    """
    if isinstance(choices, str):
        if not choices.strip():
            return ()
        try:
            # a list written as a text, as tables hold it
            choices = ast.literal_eval(choices)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if isinstance(choices, Mapping):
        choices = list(choices.values())
    return tuple(str(choice) for choice in choices) if isinstance(choices, (list, tuple)) else None


def check_fields(row: Mapping[str, Any], spec: WrapSpec) -> None:
    """Check a doc for the fields named by the options.

    Raises:
        OptionError: a task file names a field that is missing. Of a field that a profile names, a warning says that it
            is not used.
    """
    for option in ("cluster", "group", "category", "stratum", "choices", "gold", "key"):
        named = getattr(spec.options, option)
        for name in [named] if isinstance(named, str) else named or []:
            value = within(row, name)
            if option == "choices" and value is not None and texts_of(value) is None:
                raise OptionError(
                    f"option choices names the field {name!r}, which holds {type(value).__name__}, not a list of option texts"
                )
            if name not in row and value is None:
                problem = f"option {option} names the field {name!r}, which its docs do not have"
                if option in spec.options.given:
                    raise OptionError(f"{problem}; allowed: {', '.join(map(str, row))}")
                log().warning(f"{spec.name}: {problem}; it is not used")


def fields(row: Any, options: Options) -> dict[str, Any]:
    """Return the values of the fields named by the options, by option, and the doc's short fields.

    Of ``merged`` the name of what the doc's category counts in, if any.
    """
    named = {name: getattr(options, name) for name in ("cluster", "group", "category", "stratum")}
    out = {name: field(row, names) for name, names in named.items() if names}
    for name, several in (options.merged or {}).items():
        if str(out.get("category")) in map(str, several):
            out.setdefault("merged", name)
    out |= {"choices": within(row, options.choices)} if options.choices else {}
    return out | (short(row) if options.doc_fields else {})


def short(row: Any) -> dict[str, Any]:
    """Return the short fields of a doc, as columns of the samples table: what a run may later be split by."""
    # by type, since any other look at an image decodes it
    return {
        f"{FIELD}{name}": value
        for name, value in (row.items() if isinstance(row, Mapping) else ())
        if type(value) in (bool, float)
        or (type(value) is int and -(2**63) <= value < 2**63)
        or (type(value) is str and len(value) <= SHORT)
    }
