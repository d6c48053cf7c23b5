"""Digests that a run writes of what its records do not hold: prompts, answers and golds of its log, and the results file itself. Pure.

With the digest of the records (``record.log_digest``) they cover all that pages show and rules read. They take no key:
who rewrites all files of a run can write them anew (docs/strangers.md).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from lmms_patch.runs.record import log_digest

READ = (
    *("results", "group_subtasks", "configs", "versions", "n-shot", "n-samples", "higher_is_better", "config"),
    *("model_name", "model_source", "system_instruction", "system_instruction_sha", "date", "start_time"),
)
"""The keys of a results file that a reader goes by. The harness adds others while it writes, such as the time of the end."""


def of_lines(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of prompts, answers and golds of a whole log, from its lines as the log has them."""
    return log_digest(
        of_line(*(one.get(key) for key in ("doc_id", "input", "filtered_resps", "target"))) for one in lines
    )


def of_samples(samples: Iterable[Mapping[str, Any]], default: Callable[[Any], Any]) -> list[str]:
    """Return ``of_lines`` for each filter pipeline of a log not yet written by the harness.

    Args:
        samples: as the harness has them: the first of ``arguments`` becomes ``input``, ``target`` its text.
        default: makes JSON of what is no plain type, as the harness does.
    """
    lines: list[list[dict[str, Any]]] = []
    times: Counter[Any] = Counter()
    for sample in samples:
        # the harness lists a doc once for each pipeline, in the order of the pipelines
        place = times[sample["doc_id"]]
        times[sample["doc_id"]] += 1
        # as the log will give it back
        asked = json.loads(json.dumps(sample["arguments"][0], default=default))
        lines += [[]] if place == len(lines) else []
        lines[place].append({**sample, "input": asked, "target": str(sample["target"])})
    return [of_lines(some) for some in lines]


def of_line(doc_id: Any, asked: Any, answers: Any, gold: Any) -> bytes:
    """Return the SHA-256 of what a line of a sample log says beside its record.

    The harness writes one answer without its list, and a run has answers before they are written. So lists count as
    their entries, one after the other, and each entry as its text.

    Args:
        doc_id: of the doc.
        asked: the prompt (``input``).
        answers: after the filter (``filtered_resps``).
        gold: ``target``.
    """
    parts = [int(doc_id) if isinstance(doc_id, int) else doc_id, *(_texts(part) for part in (asked, answers, gold))]
    try:
        text = msgspec.json.encode(parts)
    except (ValueError, TypeError, OverflowError):
        # half a character, a text of a class of its own
        text = json.dumps(parts).encode()
    return hashlib.sha256(text).digest()


def _texts(value: Any) -> list[str]:
    """Return the entries of nested lists as texts; for anything else the text itself."""
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in ((one,) if type(one) is str else _texts(one))]
    # a plain text, whatever its class
    return ["".join((value,)) if isinstance(value, str) else str(value)]


def of_file(data: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    """Return the digest of what readers go by in a results file, 16 hex digits.

    Args:
        data: its content; ``lmms_patch.sha256`` of the file beside it counts.
        default: makes JSON of what is no plain type.
    """
    known = {key: data[key] for key in READ if key in data}
    beside = data.get("lmms_patch")
    known["lmms_patch"] = beside.get("sha256") if isinstance(beside, Mapping) else None
    # keys as texts, so that they can be sorted
    plain = json.loads(json.dumps(known, default=default))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
