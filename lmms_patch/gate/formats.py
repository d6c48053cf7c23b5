"""The types of the rules that ``lmms-patch gate`` reads, and of what it writes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.stats.bounds import LARGEST, Level, Number, Some


class Made(Struct, kw_only=True):
    """What made the file."""

    lmms_patch: str | UnsetType = UNSET


class Value(Struct, kw_only=True):
    """A number with its interval."""

    value: Number | None
    se: Number | None
    low: Number | None
    high: Number | None
    n: int
    clusters: int
    level: Number


class Verdict(Struct, kw_only=True):
    """What a rule says of one number.

    Attributes:
        metric: A number of docs/metrics.md, gate, looks, checked, excluded or n_docs; in bars: its distance from 0.
        baseline: The baseline's number, over the docs of the difference.
        difference: value - baseline.
        primary: Whether it is the primary number of its comparison with the baseline, which carries the claim; null: no difference is judged.
        level: Of this one interval, after the correction; null: no interval decides.
        detectable: How far beyond limit and margin the truth must be to fail in 80 % of runs.
        warned: Inconclusive, and the rule says that this does not block.
    """

    rule: str
    task: str
    model: str
    metric: str
    limit: str
    value: Value
    baseline: Number | None
    baseline_model: str | None
    difference: Value | None
    primary: bool | None
    level: Number | None
    detectable: Number | None
    basis: Literal["paired", "unpaired", "interval", "number"]
    verdict: Literal["pass", "fail", "inconclusive"]
    warned: bool
    reason: str


class GateJson(Struct, kw_only=True):
    """What `lmms-patch gate --json` writes: every verdict, and the exit status.

    Attributes:
        status: The exit status.
        error: Why nothing could be judged.
    """

    schema: Literal[1]
    status: Literal[0, 1, 2, 3]
    verdict: Literal["passed", "failed", "bad input", "inconclusive"]
    sentence: str
    error: str | None
    config: str
    out: str
    baseline: str | None
    made: Made
    notes: list[str]
    verdicts: list[Verdict]


Text = Annotated[str, Meta(min_length=1)]
Globs = Text | Annotated[list[Text], Meta(min_length=1)]
Margin = Annotated[float, Meta(ge=0, le=LARGEST)]
Part = Annotated[float, Meta(ge=0, lt=1)]
Required = Literal["valid gate", "looks", "checked"]


class Defaults(Struct, forbid_unknown_fields=True):
    """What holds for every rule that does not say otherwise.

    Attributes:
        level: Of the claim as a whole.
        margin: By how much a limit may be missed: limit and margin together decide; on the metric's own scale.
        correction: bonferroni: the level holds over all that is judged together: the primary numbers of all comparisons; their other numbers;
            the numbers with limits of a rule.
        max_lost: Most of the docs that a number may lose: to failed calls, or in a comparison to docs that only one run has.
        allow_limit: Hold limits of numbers themselves also against runs of a part of a benchmark (--limit, --offset).
        ignore: Settings in which a result and its baseline may differ.
        primary: The one number of each comparison with the baseline that carries the claim, such as rci3; default: the task's primary metric
            (fip).
    """

    level: Level = 0.95
    margin: Margin = 0
    inconclusive: Literal["block", "warn"] = "block"
    correction: Literal["bonferroni", "none"] = "bonferroni"
    max_lost: Part = 0.01
    allow_limit: bool = False
    ignore: Text | list[Text] | UnsetType = UNSET
    primary: Annotated[str, Meta(pattern=r"^[^*?\[]*[^*?\[\s][^*?\[]*$")] | UnsetType = UNSET


class Rule(Struct, forbid_unknown_fields=True):
    """Which results are judged, and what they must keep to.

    Attributes:
        name: Unique; says what the rule is for.
        task, model, base, kind: A wildcard, or several of which one must match; default *.
        metric: A wildcard over the numbers of docs/metrics.md, such as fip, rci3 or gap*; rci and pcri are one.
        min: Lower limit of the metric.
        max: Upper limit of the metric.
        max_drop: Limit of baseline - value.
        max_rise: Limit of value - baseline.
        require: valid gate: the full image beats chance, and a wrong image where docs were asked on one. looks: it is shown that the answers
            depend on the image; inconclusive where no doc was asked on a wrong image. checked: every number is one that the sample log gives.
        max_tst_over_chance: Limit of the text-only score less chance.
        max_excluded: Limit of the share of docs that any grid leaves out.
        min_docs: Fewest docs with the primary metric.
        absolute: Judge the metric's distance from 0.
        interval: false: the number alone decides.
        level: Of the claim as a whole.
        margin: By how much a limit may be missed: limit and margin together decide; on the metric's own scale.
        correction: bonferroni: the level holds over all that is judged together: the primary numbers of all comparisons; their other numbers;
            the numbers with limits of a rule.
        max_lost: Most of the docs that a number may lose: to failed calls, or in a comparison to docs that only one run has.
        allow_limit: Hold limits of numbers themselves also against runs of a part of a benchmark (--limit, --offset).
    """

    RULES: ClassVar = {
        "dependentRequired": {key: ["metric"] for key in ("min", "max", "max_drop", "max_rise", "absolute")},
        "allOf": [{"if": {"required": ["metric"]}, "then": {"anyOf": [{"required": [key]} for key in ("min", "max", "max_drop", "max_rise")]}}],
        "anyOf": [
            {"required": [key]} for key in ("min", "max", "max_drop", "max_rise", "require", "max_tst_over_chance", "max_excluded", "min_docs")
        ],
    }

    name: Text | UnsetType = UNSET
    task: Globs | UnsetType = UNSET
    model: Globs | UnsetType = UNSET
    base: Globs | UnsetType = UNSET
    kind: Globs | UnsetType = UNSET
    metric: Text | UnsetType = UNSET
    min: Number | UnsetType = UNSET
    max: Number | UnsetType = UNSET
    max_drop: Number | UnsetType = UNSET
    max_rise: Number | UnsetType = UNSET
    require: Required | Annotated[list[Required], Meta(min_length=1)] | UnsetType = UNSET
    max_tst_over_chance: Number | UnsetType = UNSET
    max_excluded: Part | UnsetType = UNSET
    min_docs: Some | UnsetType = UNSET
    absolute: bool = False
    interval: bool = True
    level: Level = 0.95
    margin: Margin = 0
    inconclusive: Literal["block", "warn"] = "block"
    correction: Literal["bonferroni", "none"] = "bonferroni"
    max_lost: Part = 0.01
    allow_limit: bool = False


class GateConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """The rules that `lmms-patch gate --config` reads, in YAML (docs/gate.md)."""

    schema: Literal[1]
    defaults: Defaults | UnsetType | None = UNSET
    rules: Annotated[list[Rule], Meta(min_length=1)]
