"""The orders in which the options of each doc are shown, found with the base task's own prompt, target and scorer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.boxes import within
from lmms_patch.ask.orders import FORMS, Base, Orders, changed, orders
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.filters import LazyRow
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.scorer import Scorer, own_stream

_MANY = 500
"""Finding the orders of more docs than this shows a progress bar."""
_IMAGE = "\0"
"""What stands for an image in the words of messages."""


class OrderTable:
    """The orders of a ``_rotate`` task's docs, by doc id.

    Each is found when it is first asked for, and is the same on every rank.

    Args:
        spec: what was asked.
        base: the native task.
        rows: gives the docs, without media where the base can.
        with_media: gives the docs with media.
        golds: what is known of docs' golds and options.
        scorer: the native scorer.
        primary: the metric by which it is tried whether the scorer follows.
        judged: whether the scorer calls a judge or the network; it is then not called to see whether it follows.
        messages: whether the model is told a doc by messages that the base makes itself, so that these are what it must
            be compared by.
    """

    def __init__(
        self,
        spec: WrapSpec,
        base: Any,
        rows: Callable[[], Any],
        with_media: Callable[[], Any],
        golds: Golds,
        scorer: Scorer,
        primary: str,
        *,
        messages: bool,
        judged: bool,
    ) -> None:
        self._spec, self._base, self._rows, self._with_media = spec, base, rows, with_media
        self._golds, self._scorer, self._primary = golds, scorer, primary
        self._messages, self._judged = messages, judged
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
        answer = self._golds.answer(doc_id)
        if answer is None:
            return Orders(fault="its gold and its options cannot be read")
        options = self._spec.options

        def target(row: Any) -> Any:
            return within(row, options.gold) if options.gold else self._base.doc_to_target(row)

        def score(row: Any, said: str) -> float | None:
            # whatever a scorer draws for one answer, it draws for all: no order is better by luck
            with own_stream(f"{doc_id}/orders/score"):
                return self._scorer.score_plainly(row, self._golds.as_results(doc_id, said)).get(self._primary)

        prompt = self._said if self._messages else self._base.doc_to_text
        base = Base(
            prompt,
            target,
            None if self._judged else score,
            self._base.doc_to_choice if self._golds.by_index else None,
        )
        with own_stream(f"{doc_id}/orders"):
            return orders(self._row(doc_id), base, answer, options.choices)

    def _row(self, doc_id: int) -> Any:
        return LazyRow(self._rows()[doc_id], self._with_media(), doc_id)

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

    def others(self, row: Any, doc_id: int) -> list[Any]:
        """Return a row in each further order of its options; nothing where options cannot be moved."""
        return [self.as_shown(row, doc_id, turn) for turn in range(1, len(self.of(doc_id).orders))]

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
        prompt, moved = (self.of(doc_id).orders[which].prompt() for which in (0, turn))
        # examples may stand before the doc's prompt
        if not isinstance(out[0], str) or not out[0].endswith(prompt):
            raise CannotWrapError(
                f"{self._spec.name}: {self._spec.base} asks doc {doc_id} by other words than its prompt"
            )
        out[0] = out[0].removesuffix(prompt) + moved
        if self._golds.by_index:
            row = self._row(doc_id)
            before, after = (self._base.doc_to_choice(one)[choice] for one in (row, self.as_shown(row, doc_id, turn)))
            if not str(out[1]).endswith(str(before)):
                raise CannotWrapError(
                    f"{self._spec.name}: {self._spec.base} asks doc {doc_id} for other texts than its options"
                )
            out[1] = f"{str(out[1]).removesuffix(str(before))}{after}"
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
        row = self._rows()[doc_ids[0]]
        fields = ", ".join(map(str, row)) if isinstance(row, Mapping) else "none"
        raise CannotWrapError(
            f"{name}: no doc of {base} has options that can be shown in another order; most often ({count} of {len(doc_ids)}): {often}; looked for "
            f"in its fields ({fields}): {FORMS}; to name the field, write 'choices: FIELD' in a task file or a profile (docs/rotate.md)"
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
