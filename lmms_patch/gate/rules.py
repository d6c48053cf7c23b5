"""The rules of a gate: read from YAML, checked, and made into ``Rule`` objects. Pure.

A gate that cannot fail is worse than no gate. So unknown keys, rules without a check and rules that nothing can break are refused.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from lmms_patch.ask.spec import KINDS
from lmms_patch.errors import OptionError, nearest
from lmms_patch.files import YamlLoader
from lmms_patch.resources import folder
from lmms_patch.stats.resample import LEVEL

SCHEMA = 1
VALID_GATE, LOOKS, CHECKED = "valid gate", "looks", "checked"
REQUIREMENTS = (VALID_GATE, LOOKS, CHECKED)
SELECTORS = ("task", "model", "base", "kind")
LIMITS = ("min", "max", "max_drop", "max_rise")
CHECKS = (*LIMITS, "require", "max_tst_over_chance", "max_excluded", "min_docs")
SHARED = ("level", "margin", "inconclusive", "correction", "max_lost", "allow_limit")
"""Keys of a rule that ``defaults`` may set for all rules."""
DEFAULTS = (*SHARED, "ignore", "primary")
RULE = ("name", *SELECTORS, "metric", *CHECKS, "absolute", "interval", *SHARED)
TOP = ("schema", "defaults", "rules")
LOST = 0.01
"""Share of docs that a verdict may lose. So few docs cannot hide a drop that is larger than a usual margin."""
CHOICES = {"inconclusive": ("block", "warn"), "correction": ("bonferroni", "none")}


@dataclass(frozen=True)
class Rule:
    """One rule: which results it is about, and what must hold for each of them.

    Attributes:
        name: unique in its file.
        task, model, base, kind: wildcards; a result matches where one wildcard of each matches.
        metric: a wildcard over ``measures``, for the limits; None without limits.
        min, max: limits of the number itself, on the metric's own scale.
        max_drop, max_rise: upper limits of baseline − number, and of number − baseline.
        absolute: whether the number's distance from 0 is judged in place of the number.
        interval: whether the interval decides; else the number alone.
        valid_gate: whether the gate must be valid.
        max_tst_over_chance: upper limit of the text-only score less chance.
        max_excluded: upper limit of the share of docs that any grid leaves out, 0..1.
        min_docs: least number of docs with the primary metric.
        margin: by how much a limit may be missed; limit and margin together decide (``limits.call``). On the metric's own scale.
        level: nominal coverage of the claim as a whole, 0..1.
        blocks: whether an inconclusive verdict blocks.
        corrected: whether ``level`` holds over all that is judged together (``judge.levels``).
        looks: whether it must be shown that the answers depend on the image.
        checked: whether the sample log must give every number (``lmms_patch.compare.audit``).
        max_lost: largest share of docs that a number may lose to failed calls, or a comparison to docs that only one run has, 0..1.
        allow_limit: whether limits of numbers themselves may be applied to a run of a part of the benchmark (``--limit``).
    """

    name: str
    task: tuple[str, ...] = ("*",)
    model: tuple[str, ...] = ("*",)
    base: tuple[str, ...] = ("*",)
    kind: tuple[str, ...] = ("*",)
    metric: str | None = None
    min: float | None = None
    max: float | None = None
    max_drop: float | None = None
    max_rise: float | None = None
    absolute: bool = False
    interval: bool = True
    valid_gate: bool = False
    max_tst_over_chance: float | None = None
    max_excluded: float | None = None
    min_docs: int | None = None
    margin: float = 0.0
    level: float = LEVEL
    blocks: bool = True
    corrected: bool = True
    looks: bool = False
    checked: bool = False
    max_lost: float = LOST
    allow_limit: bool = False

    @property
    def of_value(self) -> bool:
        """Whether the number itself has a limit."""
        return self.min is not None or self.max is not None

    @property
    def of_difference(self) -> bool:
        """Whether the difference to the baseline has a limit."""
        return self.max_drop is not None or self.max_rise is not None


@dataclass(frozen=True)
class Rules:
    """A file of rules.

    Attributes:
        source: the file, as it is named to people.
        rules: in its order.
        ignore: settings in which a result and its baseline may differ (keys of ``runs.fingerprint``).
        primary: the one number of each comparison that carries the claim; None: the task's primary metric.
    """

    source: str
    rules: tuple[Rule, ...]
    ignore: tuple[str, ...] = ()
    primary: str | None = None


def shipped() -> list[str]:
    """Return the names of the rules that come with lmms-patch."""
    return sorted(path.stem for path in (folder("configs") / "gates").glob("*.yaml"))


def find(config: str) -> Path:
    """Return the file of rules that a user names: by a path, or by the bare name of shipped rules.

    A bare name never means a file of the working folder: in CI that may be a stranger's checkout. A path has a separator or an ending.

    Raises:
        OptionError: there is neither.
    """
    bare = not Path(config).suffix and not any(mark in config for mark in ("/", "\\"))
    if config in shipped():
        return folder("configs") / "gates" / f"{config}.yaml"
    if not bare and Path(config).is_file():
        return Path(config)
    if bare and Path(config).is_file():
        raise OptionError(f"no shipped rules {config!r}; for the file of this name type ./{config}; shipped: {', '.join(shipped())}")
    close = nearest(Path(config).name.partition(".")[0], shipped())
    hint = f"did you mean {' or '.join(close)}?" if close else "give a YAML file, or the name of a shipped one:"
    raise OptionError(f"no rules {config!r}: no such file; {hint} shipped: {', '.join(shipped())}")


def read(config: str | Path) -> Rules:
    """Read the rules of a file.

    Args:
        config: see ``find``.

    Raises:
        OptionError: it cannot be read, or says something that is not allowed; one line with what is.
    """
    path = find(str(config))
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_GateLoader)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise OptionError(f"{path}: cannot be read ({type(error).__name__}: {error})") from None
    except yaml.YAMLError as error:
        raise OptionError(f"{path}: not YAML: {_problem(error)}") from None
    return parse(data, str(path))


def parse(data: Any, source: str = "rules") -> Rules:
    """Check the content of a file, as YAML gives it, and return its rules.

    Raises:
        OptionError: as ``read``.
    """
    if data is None:
        raise OptionError(f"{source}: empty; it needs 'schema: {SCHEMA}' and 'rules:'")
    top = _mapping(data, TOP, source)
    schema = top.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise OptionError(f"{source}: 'schema' is {_short(schema)}; this version of lmms-patch reads 'schema: {SCHEMA}'")
    defaults = _mapping(top.get("defaults") or {}, DEFAULTS, f"{source}: defaults")
    ignore = _texts(defaults.get("ignore", []), "ignore", f"{source}: defaults")
    primary = _primary(defaults, f"{source}: defaults")
    listed = top.get("rules")
    if not isinstance(listed, list) or not listed:
        raise OptionError(f"{source}: 'rules' must be a list of at least one rule, not {_short(listed)}")
    shared = _fields(defaults, f"{source}: defaults")
    rules = tuple(_rule(one, shared, source, number) for number, one in enumerate(listed, 1))
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(f"{source}: two rules have the name {_short(twice)}; each needs its own")
    return Rules(source, rules, ignore, primary)


def _rule(data: Any, shared: Mapping[str, Any], source: str, number: int) -> Rule:
    name = data.get("name") if isinstance(data, dict) else None
    where = f"{source}: rule {_short(name) if isinstance(name, str) else number}"
    given = _mapping(data, RULE, where)
    if not isinstance(name, str) or not name.strip():
        raise OptionError(f"{where}: 'name' must be a text that says what the rule is for, not {_short(name)}")
    if not any(key in given for key in CHECKS):
        raise OptionError(f"{where}: no check, so it could never fail; give one of {', '.join(CHECKS)}")
    required = _required(given, where)
    fields = {**shared, **_fields(given, where)}
    rule = Rule(name, **fields, valid_gate=VALID_GATE in required, looks=LOOKS in required, checked=CHECKED in required)
    _check(rule, given, where)
    return rule


def _fields(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the checked values of a rule, or of the defaults, by the names of ``Rule``'s fields."""
    return {_FIELDS.get(key, key): read(given[key], key, where) for key, read in _READERS.items() if key in given}


def _check(rule: Rule, given: Mapping[str, Any], where: str) -> None:
    """Check that the parts of a rule make sense together."""
    limited = [key for key in LIMITS if key in given]
    if limited and rule.metric is None:
        raise OptionError(f"{where}: '{limited[0]}' of what? name a 'metric', such as fip or rci3")
    if rule.metric is not None and not limited:
        raise OptionError(f"{where}: 'metric' without a limit; give one of {', '.join(LIMITS)}")
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        raise OptionError(f"{where}: 'min' {rule.min:g} is above 'max' {rule.max:g}: nothing can pass")
    if rule.max_drop is not None and rule.max_rise is not None and rule.max_drop + rule.max_rise < 0:
        raise OptionError(f"{where}: 'max_drop' {rule.max_drop:g} and 'max_rise' {rule.max_rise:g} contradict each other: nothing can pass")
    if rule.absolute and rule.max is not None and rule.max < 0:
        raise OptionError(f"{where}: 'absolute' with 'max' {rule.max:g}: no distance from 0 is below 0, so nothing can pass")
    if rule.absolute and rule.min is not None and rule.min <= 0:
        raise OptionError(f"{where}: 'absolute' with 'min' {rule.min:g}: every distance from 0 is at least 0, so nothing can fail")
    if rule.absolute and rule.metric is None:
        raise OptionError(f"{where}: 'absolute' needs a 'metric' with a limit")
    lone = [key for key in ("interval", *SHARED) if key in given and not (rule.looks and key == "inconclusive")]
    if lone and not limited and rule.max_tst_over_chance is None:
        raise OptionError(f"{where}: '{lone[0]}' says nothing here: the checks of this rule are counts, which have no interval")
    for pattern in rule.kind:
        if not any(fnmatchcase(kind, pattern) for kind in KINDS):
            raise OptionError(f"{where}: no 'kind' is {_short(pattern)}; {_hint(pattern, KINDS)}")


# --- single values --------------------------------------------------------------------------------


def _primary(defaults: Mapping[str, Any], where: str) -> str | None:
    """Return the name of the primary number; None where the defaults do not say."""
    if "primary" not in defaults:
        return None
    name = defaults["primary"]
    if not isinstance(name, str) or not name.strip() or any(sign in name for sign in "*?["):
        raise OptionError(f"{where}: 'primary' must be the name of one number such as fip or rci3, no wildcard, not {_short(name)}")
    return name


def _required(given: Mapping[str, Any], where: str) -> list[str]:
    """Return the ``REQUIREMENTS`` that a rule names."""
    value = given.get("require", [])
    asked = [value] if isinstance(value, str) else value
    if not isinstance(asked, list) or ("require" in given and not asked) or any(one not in REQUIREMENTS for one in asked):
        raise OptionError(f"{where}: 'require' must be '{VALID_GATE}', '{LOOKS}', '{CHECKED}', or a list of some, not {_short(value)}")
    return asked


def _number(value: Any, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise OptionError(f"{where}: '{key}' must be a number such as 0.02, not {_short(value)}")
    return float(value)


def _level(value: Any, key: str, where: str) -> float:
    if not 0.5 <= (level := _number(value, key, where)) < 1:
        raise OptionError(f"{where}: 'level' must be a fraction from 0.5 to below 1, such as 0.95, not {_short(value)}")
    return level


def _margin(value: Any, key: str, where: str) -> float:
    if (margin := _number(value, key, where)) < 0:
        raise OptionError(f"{where}: 'margin' must be at least 0, not {_short(value)}")
    return margin


def _share(value: Any, key: str, where: str) -> float:
    if not 0 <= (share := _number(value, key, where)) < 1:
        raise OptionError(f"{where}: '{key}' must be a share of the docs from 0 to below 1, not {_short(value)}")
    return share


def _count(value: Any, key: str, where: str) -> int:
    if type(value) is not int or value < 1:
        raise OptionError(f"{where}: '{key}' must be a whole number of at least 1, not {_short(value)}")
    return value


def _flag(value: Any, key: str, where: str) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{where}: '{key}' must be true or false, not {_short(value)}")
    return value


def _choice(value: Any, key: str, where: str) -> bool:
    """Return whether the first of the ``CHOICES`` is chosen."""
    if value not in CHOICES[key]:
        raise OptionError(f"{where}: '{key}' must be {' or '.join(CHOICES[key])}, not {_short(value)}")
    return bool(value == CHOICES[key][0])


def _metric(value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{where}: '{key}' must be a name such as fip or rci3, or a wildcard, not {_short(value)}")
    return value


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    """Return one text, or a list of texts, as a tuple; only 'ignore' may be empty."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or (not texts and key != "ignore"):
        raise OptionError(f"{where}: {key} must be a text or a list of texts, not {_short(value)}")
    return tuple(texts)


_READERS: dict[str, Callable[[Any, str, str], Any]] = {
    "metric": _metric,
    **dict.fromkeys(SELECTORS, _texts),
    **dict.fromkeys((*LIMITS, "max_tst_over_chance"), _number),
    **dict.fromkeys(("absolute", "interval", "allow_limit"), _flag),
    **dict.fromkeys(("max_excluded", "max_lost"), _share),
    "min_docs": _count,
    "level": _level,
    "margin": _margin,
    **dict.fromkeys(CHOICES, _choice),
}
"""How each key of a rule or of the defaults is checked."""
_FIELDS = {"inconclusive": "blocks", "correction": "corrected"}
"""The names of ``Rule``'s fields, where they are not the key's own."""


def _mapping(data: Any, allowed: Iterable[str], where: str) -> Mapping[str, Any]:
    """Return a mapping after a check that it has known keys only."""
    if not isinstance(data, dict):
        raise OptionError(f"{where}: must be keys and values, not {_short(data)}; keys: {', '.join(allowed)}")
    for key in data:
        if key not in allowed:
            raise OptionError(f"{where}: no key {_short(key)}; {_hint(str(key), allowed)}")
    return data


def _hint(name: str, allowed: Iterable[str]) -> str:
    close = nearest(name, allowed)
    return f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(allowed)}"


def _short(value: Any) -> str:
    return "nothing" if value is None else reprlib.repr(value)


# --- YAML -----------------------------------------------------------------------------------------


class _GateLoader(YamlLoader):
    """Refuses a key that is there twice: YAML would keep the last and say nothing."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping after a check that no key is there twice."""
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is there twice", key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        return super().construct_mapping(node, deep)


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be parsed"
    return f"{what}{f' (line {mark.line + 1})' if mark else ''}"
