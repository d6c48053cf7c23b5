"""The rules of a gate: what a YAML file of rules may say. Pure.

A gate that cannot fail is worse than none: an unknown key, a rule without a check, or a rule that nothing can break, is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from lmms_patch.errors import OptionError, must, read_as
from lmms_patch.files import YamlLoader
from lmms_patch.resources import folder
from lmms_patch.stats.resample import LEVEL

SELECTORS = ("task", "model", "base", "kind")
LIMITS = ("min", "max", "max_drop", "max_rise")
CHECKS = (*LIMITS, "require", "max_excluded", "min_docs")

Requirement = Literal["valid gate", "looks", "complete"]
_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
# ``.inf`` and ``.nan`` are numbers in YAML, and nothing can miss such a limit
_Number = Annotated[float, Field(allow_inf_nan=False)]
Number = Annotated[_Number, must("a number such as 0.02")]
Share = Annotated[_Number, Field(ge=0, lt=1), must("a share of the docs from 0 to below 1")]


def _entries(value: Any) -> Any:
    """Return a text or a list as a tuple; anything else unchanged, for pydantic to refuse."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


_TO_TUPLE = BeforeValidator(_entries)
_TEXTS = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Globs = Annotated[tuple[_Text, ...], Field(min_length=1), _TO_TUPLE, must("a text or a list of texts"), _TEXTS]
Required = Annotated[
    tuple[Requirement, ...],
    Field(min_length=1),
    _TO_TUPLE,
    must("'valid gate', 'looks', 'complete', or several in a list"),
    _TEXTS,
]


class _Keys(BaseModel):
    """Keys and values, and nothing else; a key without a value is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _said(cls, value: Any) -> Any:
        # YAML reads ``min:`` as null, and a rule whose limit is gone could never fail
        if value is None:
            raise ValueError("says nothing; give it a value, or leave it out")
        return value


class Shared(_Keys):
    """What a rule may say for itself, and ``defaults`` for all rules."""

    level: Annotated[float, Field(ge=0.5, lt=1), must("a fraction from 0.5 to below 1, such as 0.95")] = LEVEL
    """Level of the claim as a whole."""
    margin: Annotated[_Number, Field(ge=0), must("at least 0")] = 0.0
    """By how much a limit may be missed: limit and margin together decide (``limits.call``). On the metric's own scale."""
    inconclusive: Literal["block", "warn"] = "block"
    """Whether an inconclusive verdict blocks."""
    allow_limit: bool = False
    """Whether ``min`` and ``max`` may pass on a run with ``--limit`` or ``--offset``; else they are inconclusive there."""


class Defaults(Shared):
    """The part ``defaults`` of a file."""

    ignore: Globs = ()
    """Settings in which a result and its baseline may differ (keys of ``Result.fingerprint``)."""


class Rule(Shared):
    """One rule: which results it is about, and what must hold for each of them."""

    name: Annotated[_Text, must("a text that says what the rule is for")]
    task: Globs = ("*",)
    """Wildcards; a result matches where one of each selector does."""
    model: Globs = ("*",)
    """Wildcards of models."""
    base: Globs = ("*",)
    """Wildcards of base tasks."""
    kind: Globs = ("*",)
    """Wildcards of kinds of wrapping."""
    metric: Annotated[_Text, must("a name such as fip or rci3, or a wildcard")] | None = None
    """A wildcard over the numbers of docs/metrics.md, such as fip, rci3, trci4 or gap*; rci and pcri are one."""
    min: Number | None = None
    """Lower limit of the metric, on its own scale."""
    max: Number | None = None
    """Upper limit of the metric, on its own scale."""
    max_drop: Number | None = None
    """Limit of baseline - number."""
    max_rise: Number | None = None
    """Limit of number - baseline."""
    require: Required = ()
    """``valid gate``: the full image beats chance and a wrong image; inconclusive where it beats chance and no doc was asked on a wrong image.
    ``looks``: it is shown that the answers depend on the image. ``complete``: each task that ``task`` names is there, whole."""
    max_excluded: Share | None = None
    """Limit of the share of docs that any grid leaves out."""
    min_docs: Annotated[int, Field(ge=1), must("a whole number of at least 1")] | None = None
    """Fewest docs with the primary metric."""
    absolute: bool = False
    """Judge the number's distance from 0 in place of the number, under ``min`` and ``max``."""
    interval: bool = True
    """Whether the interval decides; else the number alone."""

    @property
    def demands(self) -> list[tuple[str, float | None, float | None]]:
        """What is demanded of results themselves: the name of a number (a wildcard, or one of ``FACTS``), and its limits."""
        limits = (
            ("gate", 1 if "valid gate" in self.require else None, None),
            ("looks", 1 if "looks" in self.require else None, None),
            ("excluded", None, self.max_excluded),
            ("n_docs", self.min_docs, None),
            (str(self.metric), self.min, self.max),
        )
        return [one for one in limits if one[1:] != (None, None)]

    @property
    def of_difference(self) -> bool:
        """Whether the difference to the baseline has a limit."""
        return self.max_drop is not None or self.max_rise is not None

    @model_validator(mode="after")
    def _makes_sense(self) -> Rule:
        """Refuse rules without a way to break them, and limits of nothing."""
        given = self.model_fields_set
        limited = [key for key in LIMITS if key in given]
        if not given & set(CHECKS):
            raise ValueError(f"no check, so it could never fail; give one of {', '.join(CHECKS)}")
        if limited and self.metric is None:
            raise ValueError(f"'{limited[0]}' of what? name a 'metric', such as fip or rci3")
        if self.metric is not None and not limited:
            raise ValueError(f"'metric' without a limit; give one of {', '.join(LIMITS)}")
        if self.absolute and self.min is not None and self.min <= 0:
            raise ValueError(f"'absolute' with 'min' {self.min:g}: every distance is at least 0, so nothing can fail")
        if self.absolute and self.of_difference:
            raise ValueError("'absolute' is of the number itself; give 'min' or 'max' with it")
        if "complete" in self.require and any(set(name) & set("*?[") for name in self.task):
            raise ValueError("'require: complete' needs the names of tasks under 'task', and no wildcard")
        return self


class File(_Keys):
    """The rules that `lmms-patch gate --config` reads, in YAML (docs/gate.md)."""

    version: Annotated[int, Field(ge=1, le=1), must("1, which this version of lmms-patch reads")] = Field(
        alias="schema"
    )
    defaults: Defaults = Defaults()
    rules: Annotated[list[Rule], Field(min_length=1)]


@dataclass(frozen=True)
class Rules:
    """The rules of a file, each with the file's defaults.

    Attributes:
        source: the file, as it is named to people.
        rules: in its order.
        ignore: settings in which a result and its baseline may differ (keys of ``Result.fingerprint``).
    """

    source: str
    rules: tuple[Rule, ...]
    ignore: tuple[str, ...] = ()


def shipped() -> list[str]:
    """Return the names of the rules shipped with lmms-patch."""
    return sorted(path.stem for path in (folder("configs") / "gates").glob("*.yaml"))


def find(config: str) -> Path:
    """Return the path of a file of rules, from a path or the bare name of shipped rules.

    A bare name never means a file of the working folder: in CI that may be a stranger's checkout. A path has a
    separator or an ending.

    Raises:
        OptionError: there is neither.
    """
    if config in shipped():
        return folder("configs") / "gates" / f"{config}.yaml"
    if Path(config).is_file() and (Path(config).suffix or any(mark in config for mark in ("/", "\\"))):
        return Path(config)
    raise OptionError(f"no rules {config!r}: give a file, such as ./gates.yaml, or one of {', '.join(shipped())}")


def read(config: str | Path) -> Rules:
    """Return the rules of a file.

    Args:
        config: see ``find``.

    Raises:
        OptionError: it cannot be read, or says something that is not allowed; one line with what is.
    """
    path = find(str(config))
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_GateLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise OptionError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    return parse(data, str(path))


def parse(data: Any, source: str = "rules") -> Rules:
    """Return the rules in the content of a YAML file, with the file's defaults filled in.

    Raises:
        OptionError: as ``read``.
    """
    file = read_as(File, data, source)
    shared = {key: getattr(file.defaults, key) for key in file.defaults.model_fields_set & set(Shared.model_fields)}
    rules = [
        rule.model_copy(update={key: value for key, value in shared.items() if key not in rule.model_fields_set})
        for rule in file.rules
    ]
    return Rules(source, tuple(rules), file.defaults.ignore)


# --- YAML -----------------------------------------------------------------------------------------


class _GateLoader(YamlLoader):
    """A loader with an error for duplicate keys, where plain YAML would silently keep the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, as the base class does."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := [key for place, key in enumerate(keys) if key in keys[:place]]:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice[0]!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)
