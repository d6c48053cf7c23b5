"""What is known of a native task before anything is asked: its metrics, the state of its run, and what its docs ask.

The plan of the docs is made from them alone, so it is the same on every rank.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.answers import Answer, Asked
from lmms_patch.ask.boxes import within
from lmms_patch.ask.captions import CiderD, tokenize
from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.references import Doc, Plan, plan, questions
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.calls import Aggregation, one_line
from lmms_patch.runs.schema import FIELD
from lmms_patch.runs.scoring import Scalar, plain
from lmms_patch.stats.forms import Form, is_whole
from lmms_patch.text import log

_OVER_ALL = re.compile(r"(^|[\W_])(average|overall|all)([\W_](acc|accuracy|score))*$", re.IGNORECASE)
"""What a metric over all docs is called among metrics over categories: ``average``, ``seed_all``, ``overall_accuracy``."""
_ONLY_A_FILE = "submission"
"""What lmms-eval calls a metric that writes the answers into a file and gives no number."""


@dataclass(frozen=True)
class AskPlan:
    """The views of each doc asked in a run with views left out. ``asking.quick`` makes the plan.

    Attributes:
        form: the form of the primary metric's aggregation, known before the model is asked; None where it is not known.
        asked: by doc id, how each evaluated doc was asked, as column ``quick`` says. Docs that are not in it were asked whole.
        numbers: by doc id, the numbers of the views that were asked, ascending, for the docs of this rank.
        sampled: whether docs were left out.
    """

    form: Form | None = None
    asked: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    numbers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    sampled: bool = False

    def is_asked(self, doc_id: int) -> bool:
        """Return whether any view of a doc was asked."""
        return doc_id not in self.asked or self.asked[doc_id]["steps"] > 0


@dataclass
class RunState:
    """What becomes known of a task while it runs.

    Attributes:
        args: the host's command-line arguments, which the host sets before it scores.
        kept: how many of the task's answers an earlier process of the same command gave.
        plan: how docs are asked.
    """

    args: Any = None
    kept: int = 0
    plan: AskPlan = field(default_factory=AskPlan)

    def note(self, **what: Any) -> None:
        """Set what has become known."""
        vars(self).update(what)


@dataclass(frozen=True)
class Known:
    """A native task, how it is wrapped, and its metrics.

    Attributes:
        base: the native task.
        spec: what was asked, with all options filled in.
        state: what is known of the run.
        predict_only: whether answers are kept only, and nothing is scored.
        native: the base's aggregations by metric.
        higher: whether higher is better, by metric.
        primary: the metric that the index is built on.
        about_primary: how it was chosen, where that is worth a line.
        judge: the client by which its scorer calls a judge or the network; None where it calls neither. Such a scorer is
            never called for references.
    """

    base: Any
    spec: WrapSpec
    state: RunState
    predict_only: bool
    native: Mapping[str, Aggregation]
    higher: Mapping[str, bool]
    primary: str
    about_primary: str
    judge: str | None

    @classmethod
    def of(cls, base: Any, spec: WrapSpec, state: RunState, *, predict_only: bool = False) -> Known:
        """Read what a native task says of itself.

        Raises:
            CannotWrapError: the base reports no metric.
            OptionError: the option ``metric`` names none of the base's metrics.
        """
        native = dict(base.aggregation())
        chosen = primary_of(spec, list(native))
        return cls(base, spec, state, predict_only, native, dict(base.higher_is_better()), *chosen, calls_judge(base))

    @property
    def names(self) -> list[str]:
        """The metrics, the primary one first."""
        return list(dict.fromkeys([self.primary, *self.higher]))

    @property
    def by_index(self) -> bool:
        """Whether answers are places among the options: those of log-likelihood tasks."""
        return (self.base.OUTPUT_TYPE or self.base.config.output_type) == "multiple_choice"

    @property
    def chat(self) -> bool:
        """Whether the model is asked by messages: the host makes another class of task for a chat model."""
        return hasattr(self.base, "doc_to_messages")

    @property
    def own_messages(self) -> bool:
        """Whether the base makes messages itself; else the host makes them of the visuals and the prompt."""
        config = self.base.config
        return callable(getattr(config, "doc_to_messages", None)) or getattr(config, "doc_to_visual", None) is None

    @property
    def rows(self) -> Any:
        """The docs with their media."""
        return self.base.eval_docs

    @property
    def plain_rows(self) -> Any:
        """The docs, without media where the base can."""
        return getattr(self.base, "eval_docs_no_media", self.base.eval_docs)

    @property
    def scored_rows(self) -> Any:
        """The docs as the host hands them to scorers."""
        return self.rows if getattr(self.state.args, "process_with_media", False) else self.plain_rows

    def over_cells(self, metric: str, key: Key) -> str:
        """Name a metric over each doc's chosen cell: ``m_mpp3``, ``m_mpp_relevant``, or ``m_drop3`` where cells are hidden."""
        return f"{metric}_{'mpp' if self.spec.kind.keeps_best else 'drop'}{end(key)}"

    def primary_among(self, items: Mapping[str, Any]) -> str | None:
        """Return the primary metric, or else the first metric of a doc (each doc of MME has only half of them)."""
        return self.primary if self.primary in items else next((m for m in self.native if m in items), None)


def primary_of(spec: WrapSpec, native: list[str]) -> tuple[str, str]:
    """Return the metric behind the index, and a line on the choice; "" where there was none.

    It is the option's. Else it is the first in the task's list that its name says is over all docs; else the first. No
    scorer is called to find out: some write files.

    Args:
        spec: what was asked.
        native: the base's metrics, in the order of its list.

    Raises:
        CannotWrapError: there is no metric.
        OptionError: a task file names a metric that is not there.
    """
    wanted, about = spec.options.metric, ""
    if not native:
        raise CannotWrapError(f"{spec.name}: {spec.base} reports no metric")
    # under --predict_only the host leaves a single metric, whatever was asked
    if wanted is not None and native != [compat.OUTPUT_ONLY]:
        if wanted in native:
            return wanted, ""
        # only what a user wrote is refused; a shipped profile gives way
        if "metric" in spec.options.given:
            raise OptionError(f"{spec.name}: {spec.base} has no metric {wanted!r}; allowed: {', '.join(native)}")
        about = f"its profile's metric {wanted!r} is not there; "
    numbers = [name for name in native if name != _ONLY_A_FILE] or native
    named = next(filter(_OVER_ALL.search, numbers), None)
    if len(native) > 1 and spec.sets:
        why = "the one over all docs by its name," if named else "the first,"
        about += f"{len(native)} metrics; the index is built on {why} {named or numbers[0]!r} (option 'metric' chooses another)"
    return named or numbers[0], about.removesuffix("; ")


# --- what the docs ask ----------------------------------------------------------------------------

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
            values.append((row.get("question"), *(value_of(row, names) for names in named)))
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


def value_of(row: Any, names: str | list[str] | None) -> Any:
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
    out = {name: value_of(row, names) for name, names in named.items() if names}
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
