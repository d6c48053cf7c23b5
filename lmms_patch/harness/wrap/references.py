"""Scores what no model said: uninformed answers, the gold, and each doc's answers under the golds of other docs.

The plan is made from the docs alone, so it is the same on every rank. An answer is scored under another doc's gold on
the rank that has the answer, and the score goes into the record of the doc that gave it. So ranks exchange nothing, and
the log of a finished run holds all that the statistics need.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from tqdm import tqdm

from lmms_patch.ask.answers import Answer, Asked
from lmms_patch.ask.boxes import within
from lmms_patch.ask.captions import CiderD, tokenize
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.named import named
from lmms_patch.ask.references import Doc, Plan, plan, questions
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.errors import OptionError
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.scorer import Unanswered
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs.scored import Baseline, Exchanged, Lent, ScoredView, cells_of
from lmms_patch.runs.scoring import Scalar, best, plain, worst_orders
from lmms_patch.stats.forms import is_whole
from lmms_patch.text import log

_MANY = 5_000
"""Reading more docs than this shows a progress bar."""
_DOCS_TO_TRY = 8
"""How many docs ``golds_from`` tries."""
_KEPT = 200_000
"""How many scores are kept to be used again: many donors give the same answer."""

Score = Callable[[Any, int, Sequence[Any], str], tuple[ScoredView, bool]]
"""Takes a row, its doc id, the answers of one view, and the name of a random stream; returns the score, and whether a random number was drawn."""


class References:
    """The references of one wrapped task: what is scored beside the model's answers.

    Args:
        spec: what was asked.
        base: the native task.
        rows: gives the docs as the host hands them to scorers, by doc id.
        score: the scorer (``Scorer.score_answers``).
        primary: the metric for which donors' answers are scored.
        silent: whether the scorer calls a judge or the network. It is then never called for references.
        plainly: ``Scorer.score_plainly``.
    """

    def __init__(
        self,
        spec: WrapSpec,
        base: Any,
        rows: Callable[[], Any],
        score: Score,
        primary: str,
        silent: bool,
        plainly: Callable[[Any, Sequence[Any]], Mapping[str, Scalar]] = lambda row, answers: {},
    ) -> None:
        self._spec, self._base, self._rows, self._score, self._primary, self._silent = (
            spec,
            base,
            rows,
            score,
            primary,
            silent,
        )
        self.docs: list[Doc] = []
        """The evaluated docs; empty until the plan is made."""
        self._ids: Sequence[int] | None = None
        self._known: dict[int, Asked] = {}
        self.plainly = plainly
        self.moved: Callable[[int], Sequence[Any]] | None = None
        """Gives the rows of a doc with its options in each other order, where answers count by their worst order; None elsewhere."""
        self._plan: Plan | None = None
        self._failed = False
        self._lock = threading.RLock()
        self._scores: OrderedDict[tuple[int, str], ScoredView] = OrderedDict()

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together. Called before the first doc is scored."""
        with self._lock:
            self._ids, self._plan, self._failed = list(doc_ids), None, False

    @property
    def plan(self) -> Plan | None:
        """The plan; None where the docs cannot be read for one. A warning then says why."""
        with self._lock:
            if self._plan is None and not self._failed:
                try:
                    self._plan = self._make()
                except Exception as error:
                    self._failed = True
                    log().warning(
                        f"{self._spec.name}: its docs cannot be read, so it has no chance floor, no ceiling and no luck: {one_line(error)}"
                    )
            return self._plan

    def _make(self) -> Plan:
        """Make the plan from the evaluated docs."""
        options, kind = self._spec.options, self._spec.kind
        self.docs = self.read(self._ids)
        made = plan(
            self.docs,
            declared=options.format,
            clusters_whole=is_whole((options.aggregation or {}).get(self._primary)),
            lend=kind.takes_null
            and not options.null
            and not self._silent
            and not self._spec.leaves_out
            and not kind.turns,
            exchange=kind.takes_null and bool(options.null) and not self._silent and not kind.every_order,
            seed=options.seed,
        )
        return dataclasses.replace(made, all_docs=len(self._rows()))

    def read(self, doc_ids: Sequence[int] | None = None) -> list[Doc]:
        """Read the docs as a plan needs them.

        Args:
            doc_ids: which docs; None stands for all of the split.
        """
        rows, options = self._rows(), self._spec.options
        ids = list(range(len(rows))) if doc_ids is None else doc_ids
        read = [rows[i] for i in tqdm(ids, desc=f"{self._spec.name}: golds", disable=len(ids) < _MANY)]
        asked = [self._asked(i, row) for i, row in zip(ids, read, strict=True)]
        texts = questions([one.prompt for one in asked], [row.get("question") for row in read])
        return [
            Doc(
                i,
                one,
                text,
                field(row, options.cluster),
                field(row, options.group or options.cluster),
                field(row, options.stratum),
            )
            for i, row, one, text in zip(ids, read, asked, texts, strict=True)
        ]

    def _asked(self, doc_id: int, row: Any) -> Asked:
        """Return what a doc asks.

        It is kept: prompt templates are slow, and docs are read for wrong images, for references and for folds.
        """
        if doc_id not in self._known:
            self._known[doc_id] = self._read(row)
        return self._known[doc_id]

    def _read(self, row: Any) -> Asked:
        """Read what a doc asks: its prompt, gold and options."""
        options, base = self._spec.options, self._base
        try:
            prompt = base.doc_to_text(row)
        except Exception:
            prompt = (
                ""  # the prompt needs the image, which these rows lack: options are then known from the golds alone
            )
        target = within(row, options.gold) if options.gold else base.doc_to_target(row)
        choices = (
            base.doc_to_choice(row) if self.by_index else within(row, options.choices) if options.choices else None
        )
        return Asked(prompt if isinstance(prompt, str) else "", target, texts_of(choices) or (), self.by_index)

    @property
    def by_index(self) -> bool:
        """Whether answers are places among the options: those of log-likelihood tasks."""
        return (self._base.OUTPUT_TYPE or self._base.config.output_type) == "multiple_choice"

    def scalar_of(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of an answer that no model gave (``Scorer.score_plainly``)."""
        answer = self._plan.answers[doc_id] if self._plan is not None else None
        return self.scalar_on(self._row(doc_id), text, len(answer.options) if answer else 0)

    def scalar_on(self, row: Any, text: str, options: int) -> Scalar:
        """Return the primary metric's scalar of an answer to a row, which may have its options in another order than the doc."""
        return self.plainly(row, self._as_results(text, options)).get(self._primary)

    def marks(self, doc_id: int) -> Scalar:
        """Return a doc's full marks: what its gold earns by the primary metric (the best of several golds).

        None where that is not known.
        """
        made = self.plan
        if self._silent or made is None or doc_id not in made.baselines:
            return None
        golds = [text for text, roles in made.baselines[doc_id].items() if "gold" in roles]
        known = [
            score for text in golds if (score := self._baseline_of(doc_id, text).scores.get(self._primary)) is not None
        ]
        return max(known, default=None)

    def items(self, doc_ids: Sequence[int]) -> dict[str, list[tuple[Any, Scalar]]]:
        """Return native items with their scalars that the metric's aggregation may be tried on: those of golds, and of other answers.

        Args:
            doc_ids: which docs; those without such an answer are left out.
        """
        out: dict[str, list[tuple[Any, Scalar]]] = {"gold": [], "other": []}
        made = self.plan
        for doc_id in doc_ids if made is not None and not self._silent else ():
            for text, roles in made.baselines.get(doc_id, {}).items() if made is not None else ():
                scored = self._baseline_of(doc_id, text)
                if self._primary in scored.items:
                    out["gold" if "gold" in roles else "other"].append(
                        (scored.items[self._primary], scored.scores.get(self._primary))
                    )
        return out

    def _baseline_of(self, doc_id: int, text: str) -> ScoredView:
        assert self._plan is not None
        return self._on(doc_id, self._as_results(text, len(self._plan.answers[doc_id].options)))[0]

    def golds_from(self) -> tuple[str, str]:
        """Return, in words, where golds come from.

        And where golds earn nothing, the field that the scorer seems to compare with.

        That field is found by trial: it is the first whose text earns more than 0 on each of the first docs.
        """
        given, target = self._spec.options.gold, self._base.config.doc_to_target
        shown = f"function {target.__name__}" if callable(target) and hasattr(target, "__name__") else repr(target)
        told = f"the option gold, {given!r}" if given else f"doc_to_target, {shown}"
        if self._silent or self.plan is None or self.by_index:
            return told, ""
        first = [
            (doc.doc_id, self.plan.answers[doc.doc_id].gold, self._row(doc.doc_id)) for doc in self.docs[:_DOCS_TO_TRY]
        ]
        if not first or any(gold is None or (self._earned(doc_id, gold) or 0) > 0 for doc_id, gold, _ in first):
            return told, ""
        names = [
            name
            for name, value in first[0][2].items()
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        ]
        for name in names:
            if all((self._earned(doc_id, str(row.get(name, ""))) or 0) > 0 for doc_id, _, row in first):
                return told, name
        return told, ""

    def _earned(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of a text that is given as the answer to a doc."""
        return self._on(doc_id, [text])[0].scores.get(self._primary)

    def named(self, doc_id: int, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]) -> list[ScoredView]:
        """Return the scored views of a doc, each with the place of its answer among the doc's options.

        The scorer decides whether that is the gold: an answer with full marks names it, whatever it looks like, and one
        without does not. Options that are shown in another order are not read.

        Args:
            doc_id: the doc.
            scored: its views.
            answers: the filtered answers of each view.
        """
        made = self.plan
        answer = None if made is None else made.answers.get(doc_id)
        if answer is None or len(answer.options) < 2 or self.moved is not None:
            return list(scored)
        gold_at, marks = _gold_at(answer), self.marks(doc_id)
        out = []
        for one, got in zip(scored, answers, strict=True):
            score, place, misread = one.scores.get(self._primary), None, False
            if score is not None and marks and not one.view.turn:
                read = named(said(got, whole=True), answer)
                place = gold_at or 0 if score >= marks else 0 if read == gold_at else read
                misread = score >= marks and gold_at is not None and read != gold_at
            out.append(msgspec.structs.replace(one, names=place, misread=misread))
        return out

    # --- what goes into a doc's record ------------------------------------------------------------

    def of(
        self,
        doc_id: int,
        scored: Sequence[ScoredView],
        answers: Sequence[Sequence[Any]],
        wrong: tuple[Sequence[ScoredView], Sequence[Sequence[Any]]],
        used: Sequence[Key],
        apart: bool,
    ) -> dict[str, Any]:
        """Return the reference fields of a doc's ``SampleRecord``.

        Args:
            doc_id: the doc.
            scored: its views.
            answers: the filtered answers of each view.
            wrong: the views of the wrong image, and their answers.
            used: the grids, or sets of boxes, that the doc is used for.
            apart: whether the scorer may score the same answer in two ways (``Scorer.keeps_apart``).
        """
        made = self.plan
        if made is None or doc_id not in made.answers:
            return {}
        answer = made.answers[doc_id]
        about = {"format": answer.format, "label": answer.label, "options": len(answer.options), "gold": answer.gold}
        about |= {"gold_at": _gold_at(answer)}
        out: dict[str, Any] = {"answer": about, "stratum": made.strata[doc_id]}
        if self._silent:
            return out
        with self._lock:
            for one, got in zip((*scored, *wrong[0]), (*answers, *wrong[1]), strict=True):
                if not apart and one.error is None and not one.failed and not one.view.turn:
                    self._keep((doc_id, repr(list(got))), one)
            told_so = made.baselines[doc_id].items()
            out["baselines"] = tuple(
                one for text, roles in told_so for one in self._baselines(doc_id, text, roles, len(answer.options))
            )
            for loan in made.loans.get(doc_id, ()):
                out.setdefault("lent", []).append(
                    Lent(loan.to, loan.p, *self._elsewhere(doc_id, loan.to, scored, answers, used))
                )
            for to in made.alike.get(doc_id, ()) if wrong[0] else ():
                both = [
                    self._elsewhere(doc_id, to, *views, used, of)
                    for of, views in (("", (scored, answers)), ("wrong ", wrong))
                ]
                out.setdefault("exchanged", []).append(Exchanged(to, *both[0], *both[1]))
        return out

    def _baselines(self, doc_id: int, text: str, roles: Sequence[str], options: int) -> list[Baseline]:
        """Return an uninformed answer, scored: as gold in the doc's own order, in other roles by its worst order where orders count."""
        answers = self._as_results(text, options)
        own, _ = self._on(doc_id, answers)
        if self.moved is None:
            return [Baseline(text, tuple(roles), own.items, own.scores)]
        out = [Baseline(text, ("gold",), own.items, own.scores)] if "gold" in roles else []
        if others := tuple(role for role in roles if role != "gold"):
            scored = [
                own,
                *(
                    self._score(row, doc_id, answers, f"order {turn}/{text}")[0]
                    for turn, row in enumerate(self.moved(doc_id), 1)
                ),
            ]
            (worst,) = (
                scored[place]
                for place in worst_orders(scored, lambda one: text, lambda one: one.scores.get(self._primary))
            )
            out.append(Baseline(text, others, worst.items, worst.scores))
        return out

    def _as_results(self, text: str, options: int) -> list[Any]:
        """Return an answer in the form that the scorer takes.

        That is a text; or for multiple choice one loss per option (the host calls them log-likelihoods), lowest for the
        answer.
        """
        if not self.by_index:
            return [text]
        return [(0.0 if str(i) == text else 100.0, str(i) == text) for i in range(options)]

    def _elsewhere(
        self,
        doc_id: int,
        to: int,
        scored: Sequence[ScoredView],
        answers: Sequence[Sequence[Any]],
        used: Sequence[Key],
        of: str = "",
    ) -> tuple[Scalar, dict[Key, Scalar]]:
        """Score a doc's answers under the gold of another doc.

        Return the scalar of the first view, and of the best of each set.

        Views with the same answer are scored once.

        Args:
            doc_id: the doc that got the answers.
            to: the doc under whose gold they are scored.
            scored: the views.
            answers: the filtered answers of each view.
            used: the sets.
            of: of which image, for the random stream.
        """
        known: dict[str, Scalar] = {}

        def scalar(view: int) -> Scalar:
            if Unanswered in map(type, answers[view]):
                return None
            text = repr(list(answers[view]))
            if text in known:
                return known[text]
            scored, drew = self._on(to, list(answers[view]), f"{doc_id}/{of}{view}", text)
            score = scored.scores.get(self._primary)
            if not drew:
                known[text] = score
            return score

        def best_of(places: Sequence[int]) -> Scalar:
            scores = [scalar(place) for place in places]
            place = best(scores)
            return None if place is None else scores[place]

        cells = {key: cells_of([one.view for one in scored], key) for key in used}
        return scalar(0), {key: best_of(places) for key, places in cells.items() if places}

    def _on(self, doc_id: int, answers: list[Any], who: str = "", told: str = "") -> tuple[ScoredView, bool]:
        """Score answers on a doc, and tell whether the scorer drew a random number.

        The score is kept to be used again, unless the scorer drew: then each view gets a guess of its own.

        Args:
            doc_id: the doc.
            answers: one filtered answer, or one per choice.
            who: names the random stream of the answers.
            told: the answers as a text, where it is known; else it is made here.
        """
        key = doc_id, told or repr(answers)
        if key in self._scores:
            return self._scores[key], False
        scored, drew = self._score(self._row(doc_id), doc_id, answers, f"{who}/{key[1]}")
        if not drew:
            self._keep(key, scored)
        return scored, drew

    def _keep(self, key: tuple[int, str], scored: ScoredView) -> None:
        self._scores[key] = scored
        if len(self._scores) > _KEPT:
            self._scores.popitem(last=False)

    @functools.lru_cache(maxsize=512)  # noqa: B019 - one object per task, as long-lived as the task
    def _row(self, doc_id: int) -> Any:
        return self._rows()[doc_id]


def _gold_at(answer: Answer) -> int | None:
    """Return the place of the gold among the options, from 1; None where it is none of them."""
    return answer.options.index(answer.gold) + 1 if answer.gold in answer.options else None


class CaptionScore:
    """The CIDEr-D of one caption item. Document frequencies come from the references of all evaluated docs.

    We use our own tokens (``captions.tokenize``); the corpus metrics use the official tokenizer.

    Args:
        references: the references of the task.
    """

    def __init__(self, references: References) -> None:
        self._references = references

    @functools.cached_property
    def _corpus(self) -> CiderD:
        made = self._references.plan
        if made is None:
            raise ValueError("the references of the captions cannot be read")
        return CiderD([_tokenized(answer.golds) for answer in made.answers.values()])

    def __call__(self, item: Any) -> Scalar:
        golds = [item["answer"]] if isinstance(item["answer"], str) else item["answer"]
        return self._corpus.score(_tokenized([item["pred"]])[0], _tokenized(golds))


def _tokenized(texts: Sequence[str]) -> list[str]:
    return [_tokens(text) for text in texts]


@functools.lru_cache(maxsize=200_000)
def _tokens(text: str) -> str:
    return " ".join(tokenize(text))


def field(row: Any, names: str | list[str] | None) -> Any:
    """Return the value of a doc's field, or the values of several fields as one key.

    None where the doc lacks one, or none is named.

    A value that is not a plain number or text stands as its JSON.
    """
    if names is None:
        return None
    values = [within(row, name) for name in ([names] if isinstance(names, str) else names)]
    known = [value if isinstance(value, (str, int)) else plain(value) for value in values]  # nan becomes None
    if None in known:
        return None
    simple = [value if isinstance(value, (str, int)) else json.dumps(value, sort_keys=True) for value in known]
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
            choices = ast.literal_eval(choices)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if isinstance(choices, Mapping):
        choices = list(choices.values())
    return tuple(str(choice) for choice in choices) if isinstance(choices, (list, tuple)) else None


def check_fields(row: Mapping[str, Any], spec: WrapSpec) -> None:
    """Check that a doc has the fields that the options name.

    Raises:
        OptionError: a task file names a field that is missing. Of a field that a profile names, a warning says that it
            is not used.
    """
    for option in ("cluster", "group", "category", "stratum", "choices", "gold", "key"):
        named = getattr(spec.options, option)
        for name in [named] if isinstance(named, str) else named or []:
            if name in row or ("." in name and within(row, name) is not None):
                if option != "choices" or (value := within(row, name)) is None or texts_of(value) is not None:
                    continue
                raise OptionError(
                    f"option choices names the field {name!r}, which holds {type(value).__name__}, not a list of option texts"
                )
            problem = f"option {option} names the field {name!r}, which its docs do not have"
            if option in spec.options.given:
                raise OptionError(f"{problem}; allowed: {', '.join(map(str, row))}")
            log().warning(f"{spec.name}: {problem}; it is not used")


def fields(row: Any, options: Options) -> dict[str, Any]:
    """Return the values of the fields that the options name, by option.

    Of ``merged`` the name of what the doc's category counts in, if any.
    """
    named = {name: getattr(options, name) for name in ("cluster", "group", "category", "stratum")}
    out = {name: field(row, names) for name, names in named.items() if names}
    into = next(
        (name for name, several in (options.merged or {}).items() if str(out.get("category")) in map(str, several)),
        None,
    )
    out |= {} if into is None else {"merged": into}
    return out | ({"choices": within(row, options.choices)} if options.choices else {})
