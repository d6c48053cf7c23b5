"""YAML that anybody may have written: plain types, and no more of them than the file could hold without references. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from lmms_patch.plain_json import DIGITS

LONGEST = 1_000_000
"""Characters of one file: a megabyte takes ten seconds."""
DEEPEST = 50
MOST = 100_000
"""Values of one file, those that references repeat counted each time: ten lines of references to references would be billions."""


class Loader(yaml.SafeLoader):
    """Refuses references that repeat too much or refer to themselves, and whole numbers that no float can hold."""

    def __init__(self, stream: str) -> None:
        """See the base class."""
        if len(stream) > LONGEST:
            raise yaml.constructor.ConstructorError(None, None, f"more than {LONGEST:,} characters")
        super().__init__(stream)

    def fetch_flow_collection_start(self, token: Any) -> None:
        """See the base class, which takes time in proportion to the square of the depth."""
        if self.flow_level >= DEEPEST:
            raise yaml.constructor.ConstructorError(None, None, f"more than {DEEPEST} brackets in each other", self.get_mark())
        super().fetch_flow_collection_start(token)

    def get_single_node(self) -> Any:
        """See the base class."""
        node = super().get_single_node()
        if node is not None:
            _size(node, {})
        return node


def _whole(loader: Loader, node: Any) -> Any:
    if len(node.value) > DIGITS:
        raise yaml.constructor.ConstructorError(None, None, f"a whole number of {len(node.value)} digits", node.start_mark)
    return loader.construct_yaml_int(node)


def _date(loader: Loader, node: Any) -> Any:
    if not isinstance(node, yaml.ScalarNode) or not loader.timestamp_regexp.match(node.value):  # PyYAML itself stumbles over it
        raise yaml.constructor.ConstructorError(None, None, "a date that is none", node.start_mark)
    return loader.construct_yaml_timestamp(node)


Loader.add_constructor("tag:yaml.org,2002:int", _whole)
Loader.add_constructor("tag:yaml.org,2002:timestamp", _date)


def _size(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node holds with all that it refers to.

    Raises:
        yaml.constructor.ConstructorError: too many, or without end.
    """
    if id(node) in known:
        if not known[id(node)]:
            raise yaml.constructor.ConstructorError(None, None, "a value that refers to itself", node.start_mark)
        return known[id(node)]
    known[id(node)] = 0
    held = node.value if isinstance(node, yaml.CollectionNode) else ()
    parts = [part for one in held for part in (one if isinstance(one, tuple) else (one,))]
    total = 1 + sum(_size(part, known) for part in parts)
    if total > MOST:
        raise yaml.constructor.ConstructorError(None, None, f"more than {MOST:,} values, most of them by reference", node.start_mark)
    known[id(node)] = total
    return total


def load(text: str) -> Any:
    """Read YAML.

    Raises:
        ValueError: it is not YAML, or more than plain values.
    """
    try:
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
