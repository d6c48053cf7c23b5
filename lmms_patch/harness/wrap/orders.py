"""The orders in which the options of each doc are shown, found with the base task's own prompt, target and scorer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.orders import FORMS, Base, Orders, changed, orders
from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Golds
from lmms_patch.harness.wrap.scorer import LazyRow, Scorer, own_stream

_MANY = 500
"""Finding the orders of more docs than this shows a progress bar."""
_IMAGE = "\0"
"""What stands for an image in the words of messages."""


class OrderTable:
    """The orders of docs' options, by doc id. Each is found when it is first asked for, and is the same on every rank.

    Args:
        golds: what is known of docs' golds and options. A scorer that calls a judge is not called to see whether it follows.
        scorer: the native scorer.
        messages: whether the model is told a doc by messages that the base makes itself, so that these are what it must
            be compared by.
    """

    def __init__(self, golds: Golds, scorer: Scorer, *, messages: bool) -> None:
        self._golds, self._scorer, self._messages = golds, scorer, messages
        self._task, self._spec, self._base = golds.known, golds.known.spec, golds.known.base
        self._known: dict[int, Orders] = {}
        self._lock = threading.RLock()

    def of(self, doc_id: int) -> Orders:
        """Return the orders of a doc."""
        with self._lock:
            if doc_id not in self._known:
                try:
                    self._known[doc_id] = self._find(doc_id)
                except Exception as error:
                    # prompts, targets and scorers of any task
                    self._known[doc_id] = Orders(fault=one_line(error))
            return self._known[doc_id]

    def _find(self, doc_id: int) -> Orders:
        answer, base, golds = self._golds.answer(doc_id), self._base, self._golds
        if answer is None:
            return Orders(fault="its gold and its options cannot be read")

        def score(row: Any, said: str) -> float | None:
            # whatever a scorer draws for one answer, it draws for all: no order is better by luck
            with own_stream(f"{doc_id}/orders/score"):
                return self._scorer.score_plainly(row, golds.as_results(doc_id, said)).get(self._task.primary)

        prompt = self._said if self._messages else base.doc_to_text
        choices = base.doc_to_choice if self._task.by_index else None
        with own_stream(f"{doc_id}/orders"):
            of_base = Base(prompt, golds.target, None if self._task.judge else score, choices)
            return orders(self._row(doc_id), of_base, answer)

    def _row(self, doc_id: int) -> Any:
        return LazyRow(self._task.plain_rows[doc_id], self._task.rows, doc_id)

    def _said(self, row: Any) -> str:
        """Return all words of the base's messages, with a mark for each image."""
        # images are only marked, since they are the same in every order
        payload = media.replace_in_messages(self._base.doc_to_messages(row), lambda medium, number: _IMAGE)
        return "\n".join(_words(message.get("content")) for message in payload)

    def views_of(self, doc_id: int, views: Sequence[View]) -> tuple[View, ...]:
        """Return some views of a doc in each order of its options.

        Where these cannot be moved, the first view alone, since cells would not count.
        """
        found = self.of(doc_id).orders
        if not found:
            return tuple(views[:1])
        return tuple(
            View(view.kind, view.n, view.row, view.col, turn=turn, gold=order.gold)
            for turn, order in enumerate(found)
            for view in views
        )

    def as_shown(self, row: Any, doc_id: int, turn: int) -> Any:
        """Return a doc's row with its options moved by some places."""
        return changed(row, self.of(doc_id).orders[turn].changes) if turn else row

    def asked(self, doc_id: int, turn: int, arguments: Sequence[Any], choice: int) -> list[Any]:
        """Return the arguments of a native request for a doc with its options moved by some places.

        Args:
            doc_id: the doc.
            turn: by how many places.
            arguments: of the native request; the first is the prompt, or examples and the prompt.
            choice: which of the doc's native requests it is: the number of an option whose likelihood is asked.

        Raises:
            CannotWrapError: the request does not end with the doc's prompt.
        """
        out = list(arguments)
        # then the model is told by messages, which are made of the moved row
        if not turn or self._messages:
            return out
        row = self._row(doc_id)
        rows = row, self.as_shown(row, doc_id, turn)
        pairs = [[self._base.doc_to_text(one) for one in rows]]
        if self._task.by_index:
            pairs.append([str(self._base.doc_to_choice(one)[choice]) for one in rows])
        for place, (before, after) in enumerate(pairs):
            # examples may stand before the doc's prompt
            if not str(out[place]).endswith(before):
                raise CannotWrapError(
                    f"{self._spec.name}: {self._spec.base} asks doc {doc_id} by other words than its prompt and options"
                )
            out[place] = str(out[place]).removesuffix(before) + after
        return out

    def check(self, doc_ids: Sequence[int]) -> None:
        """Refuse to go on where no evaluated doc can be asked in another order.

        Args:
            doc_ids: the docs that are evaluated, of all ranks.

        Raises:
            CannotWrapError: the message says why, and what to write.
        """
        if not doc_ids or any(self.of(doc_id).orders for doc_id in doc_ids):
            return
        faults = Counter(self.of(doc_id).fault for doc_id in doc_ids)
        (often, count), name, base = faults.most_common(1)[0], self._spec.name, self._spec.base
        row = self._task.plain_rows[doc_ids[0]]
        fields = ", ".join(map(str, row)) if isinstance(row, Mapping) else "none"
        raise CannotWrapError(
            f"{name}: no doc of {base} has options that can be shown in another order; most often ({count} of {len(doc_ids)}): {often}; looked for "
            f"in its fields ({fields}): {FORMS} (docs/rotate.md)"
        )

    def counts(self, doc_ids: Sequence[int], views: Sequence[View], part: str = "") -> str:
        """Return, in words, how many docs are asked in every order, and why the rest are not.

        Args:
            doc_ids: the docs.
            views: what each of them is asked on, in one order.
            part: stands behind the number of docs.
        """
        bar = tqdm(doc_ids, desc=f"{self._spec.name}: orders of options", disable=len(doc_ids) < _MANY)
        known = [self.of(doc_id) for doc_id in bar]
        asked = sum(len(self.views_of(doc_id, views)) for doc_id in doc_ids)
        moved = sum(bool(one.orders) for one in known)
        faults = Counter(one.fault for one in known if one.fault)
        told = "".join(f"; {count} once ({why})" for why, count in faults.most_common())
        return f"{moved} of {len(known)} docs{part} are asked in every order of their options, {asked:,} requests{told}"


def _words(content: Any) -> str:
    """Return the text of a message's content, with a mark in place of each image."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(
        _IMAGE if part.get("type") != "text" else str(part.get("text")) for part in content if isinstance(part, Mapping)
    )
