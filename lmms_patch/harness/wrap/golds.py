"""What is known of the docs of one task before any is answered: prompts, golds, options, clusters, and the plan made of them.

The plan is made from the docs alone, so it is the same on every rank.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.answers import Answer, Asked
from lmms_patch.ask.boxes import within
from lmms_patch.ask.captions import CiderD, tokenize
from lmms_patch.ask.references import Doc, Plan, plan, questions
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.errors import OptionError
from lmms_patch.harness.wrap.calls import one_line
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

    Args:
        spec: what was asked.
        base: the native task.
        rows: the docs in every form (``session.Rows``).
        primary: the metric for which answers are scored under other golds.
        silent: whether the scorer calls a judge or the network. It is then never called for references.
    """

    def __init__(self, spec: WrapSpec, base: Any, rows: Any, primary: str, *, silent: bool) -> None:
        self.spec, self.base, self.rows, self.primary, self.silent = spec, base, rows, primary, silent
        self.docs: list[Doc] = []
        """The evaluated docs; empty until the plan is made."""
        self._ids: Sequence[int] | None = None
        self._known: dict[int, Asked] = {}
        self._plan: Plan | None = None
        self._unread = True
        self._lock = threading.RLock()

    def known(self, doc_id: int) -> Asked | None:
        """Return what a doc asks; None where it was not read."""
        return self._known.get(doc_id)

    def answer(self, doc_id: int) -> Answer | None:
        """Return how a doc is to be answered; None where unknown."""
        return None if self.plan is None else self.plan.answers.get(doc_id)

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together. Called before the first doc is scored."""
        self._ids, self._plan, self._unread = list(doc_ids), None, True

    @property
    def plan(self) -> Plan | None:
        """The plan; None, with a warning, where the docs cannot be read."""
        # docs are scored in several threads
        with self._lock:
            if self._unread:
                self._unread = False
                try:
                    self._plan = self._make()
                except Exception as error:
                    log().warning(
                        f"{self.spec.name}: its docs cannot be read, so it has no chance floor and no ceiling: {one_line(error)}"
                    )
            return self._plan

    def _make(self) -> Plan:
        """Make the plan from the evaluated docs."""
        options = self.spec.options
        self.docs = self.read(self._ids)
        made = plan(
            self.docs,
            declared=options.format,
            clusters_whole=is_whole(options.form(self.primary)),
            seed=options.seed,
        )
        # a part of the docs must not pass for the whole benchmark
        return dataclasses.replace(made, all_docs=len(self.rows.scored()))

    def read(self, doc_ids: Sequence[int] | None = None) -> list[Doc]:
        """Read the docs as a plan needs them.

        What a doc asks is kept: prompt templates are slow, and docs are read for wrong images, for references and for folds.

        Args:
            doc_ids: which docs; None stands for all of the split.
        """
        rows, options = self.rows.scored(), self.spec.options
        ids = list(range(len(rows))) if doc_ids is None else doc_ids
        named = options.cluster, options.group or options.cluster, options.stratum
        values = []
        # row by row, since rows may hold images
        for i in tqdm(ids, desc=f"{self.spec.name}: golds", disable=len(ids) < _MANY):
            row = rows[i]
            self._known[i] = self._known.get(i) or self._asked(row)
            values.append((row.get("question"), *(field(row, names) for names in named)))
        texts = questions([self._known[i].prompt for i in ids], [question for question, *_ in values])
        return [
            Doc(i, self._known[i], question, *of_doc)
            for i, question, (_, *of_doc) in zip(ids, texts, values, strict=True)
        ]

    def _asked(self, row: Any) -> Asked:
        """Read what a doc asks: its prompt, gold and options."""
        base = self.base
        try:
            prompt = base.doc_to_text(row)
        except Exception:
            # the prompt needs the image, which these rows lack: options are then known from the golds alone
            prompt = ""
        named = self.spec.options.choices
        choices = texts_of(base.doc_to_choice(row) if self.by_index else within(row, named) if named else None)
        return Asked(prompt if isinstance(prompt, str) else "", self.target(row), choices or (), self.by_index)

    def target(self, row: Any) -> Any:
        """Return the gold of a row."""
        field = self.spec.options.gold
        return within(row, field) if field else self.base.doc_to_target(row)

    @property
    def by_index(self) -> bool:
        """Whether answers are places among the options: those of log-likelihood tasks."""
        return (self.base.OUTPUT_TYPE or self.base.config.output_type) == "multiple_choice"

    def as_results(self, doc_id: int, text: str) -> list[Any]:
        """Return an answer to a doc in the scorer's form.

        That is a text; or for multiple choice one loss per option (the host calls them log-likelihoods), lowest for the
        answer.
        """
        if not self.by_index:
            return [text]
        answer = self.answer(doc_id)
        options = range(0 if answer is None else len(answer.options))
        return [(0.0 if str(i) == text else 100.0, str(i) == text) for i in options]


class CaptionScore:
    """Scores a caption item by CIDEr-D. Document frequencies come from the references of all evaluated docs.

    We use our own tokens (``captions.tokenize``); the corpus metrics use the official tokenizer.

    Args:
        golds: what is known of the task's docs.
    """

    def __init__(self, golds: Golds) -> None:
        self._golds = golds

    @functools.cached_property
    def _corpus(self) -> CiderD:
        made = self._golds.plan
        if made is None:
            raise ValueError("the references of the captions cannot be read")
        return CiderD([list(map(_tokens, answer.golds)) for answer in made.answers.values()])

    def __call__(self, item: Any) -> Scalar:
        # a doc with a single reference may have it as a text
        golds = [item["answer"]] if isinstance(item["answer"], str) else item["answer"]
        return self._corpus.score(_tokens(item["pred"]), list(map(_tokens, golds)))


@functools.lru_cache(maxsize=200_000)
def _tokens(text: str) -> str:
    return " ".join(tokenize(text))


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
    """Return the values of the fields named by the options, by option.

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
