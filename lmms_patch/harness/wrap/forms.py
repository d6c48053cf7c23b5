"""Other forms of a doc: its options in other orders, its own boxes, and other docs' images."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.boxes import DocBoxes, hide, misfit, read
from lmms_patch.ask.kinds import REGIONS
from lmms_patch.ask.orders import FORMS, Base, Orders, changed, orders
from lmms_patch.ask.references import Doc, alike, digest, unit_of
from lmms_patch.ask.views import Size, View
from lmms_patch.ask.wrong_images import Look, Ring, choose, sample
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Golds, Known
from lmms_patch.harness.wrap.scorer import LazyRow, Scorer, own_stream
from lmms_patch.harness.wrap.shelf import Shelf
from lmms_patch.text import log
from lmms_patch.tst.keys import keys_of

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


# --- boxes of its own -----------------------------------------------------------------------------

_MANY_ROWS = 5_000


class BoxTable:
    """The boxes of a task's docs, by doc id.

    The boxes of all docs of the split are read, whatever ``--limit`` says, so that a ``ViewId`` means the same view in
    every run.

    Args:
        known: the task.
        shelf: shows its docs.
    """

    def __init__(self, known: Known, shelf: Shelf) -> None:
        self._known, self._spec, self._shelf = known, known.spec, shelf

    @cached_property
    def _of_docs(self) -> list[DocBoxes]:
        """The boxes of each doc, read when they are first asked for."""
        options, rows = self._spec.options, self._known.plain_rows
        return [
            read(row, options.boxes, options.relevant, options.box_form) if isinstance(row, Mapping) else DocBoxes()
            for row in tqdm(rows, desc=f"{self._spec.name}: boxes", disable=len(rows) < _MANY_ROWS)
        ]

    @cached_property
    def most(self) -> int:
        """The largest number of views from a doc's boxes: of hidden boxes one for each set."""
        boxes = [doc.boxes for doc in self._of_docs]
        return max(
            (len({box.set for box in of_doc} if self._spec.kind.hides else of_doc) for of_doc in boxes), default=0
        )

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of all boxes in their order.

        Where it differs, runs show different views under the same ids.
        """
        return digest([[*one.area, one.relevant] for one in doc.boxes] for doc in self._of_docs)

    def check(self, doc_ids: Sequence[int]) -> str:
        """Refuse to go on where no evaluated doc has boxes; else return, in words, how many boxes of each set they have.

        Args:
            doc_ids: the docs that are evaluated.

        Raises:
            CannotWrapError: none of them has a box of either set; the message says why, and what to type.
        """
        sets = Counter(box.set for doc_id in doc_ids for box in self._of_docs[doc_id].boxes)
        if sets:
            return f"{len(doc_ids)} docs with {', '.join(f'{sets[name]} {name}' for name in REGIONS)} boxes"
        base, options = self._spec.base, self._spec.options
        faults = [f"{fault} (doc {doc_id})" for doc_id in doc_ids if (fault := self._of_docs[doc_id].fault)]
        if self.most or faults:
            first = f"; the first of {len(faults)} faults: {faults[0]}" if faults else ""
            why = f"none of the {len(doc_ids)} docs asked has boxes that can be used{first}; if others of {base} have, raise --limit"
        else:
            fields = ", ".join(map(str, self._known.plain_rows[doc_ids[0]]))
            why = (
                f"the docs of {base} have no boxes in their field {options.boxes!r}; each needs a list of [left, top, right, bottom] in pixels, and "
                f"a list of true and false in {options.relevant!r}; the options 'boxes' and 'relevant' name others of {fields} (docs/regions.md)"
            )
        raise CannotWrapError(f"{self._spec.name}: {why}")

    # --- on the images that the base shows ----------------------------------------------------------

    def views(self, doc_id: int) -> tuple[View, ...]:
        """Return the views made from a doc's boxes: each box by itself, or each set hidden; none where a box cannot be cut."""
        boxes = self._of_docs[doc_id].boxes
        if not boxes or self.misfit(doc_id):
            return ()
        if not self._spec.kind.hides:
            return boxes
        hidden = [hide(boxes, name, self._size(doc_id)) for name in REGIONS]
        return tuple(view for view in hidden if not isinstance(view, str))

    def why_none(self, doc_id: int, name: str) -> str | None:
        """Say why a doc has no usable box of a set; None where there is such a box."""
        doc = self._of_docs[doc_id]
        if doc.fault or not any(box.set == name for box in doc.boxes):
            return doc.fault or (f"no {name} box" if doc.boxes else "no box")
        if (why := self.misfit(doc_id)) or not self._spec.kind.hides:
            return why or None
        view = hide(doc.boxes, name, self._size(doc_id))
        return view if isinstance(view, str) else None

    def misfit(self, doc_id: int) -> str:
        """Say why a doc's boxes cannot be cut from the image shown by the base; "" where they can."""
        facts = self._shelf.known(doc_id)
        if facts.no_image:
            return facts.no_image
        size = self._size(doc_id)
        # boxes are in pixels of the stored image
        if facts.stored and size not in facts.stored:
            shown, *stored = (f"{width}x{height}" for width, height in (size, *sorted(facts.stored)))
            return (
                "an image that is shown in another size than the doc has it, so that its boxes are elsewhere: "
                f"{shown} pixels, not {', '.join(stored)}"
            )
        return misfit(self._of_docs[doc_id].boxes, size, self._spec.options.min_side)

    def _size(self, doc_id: int) -> Size:
        """Return the size of the image that the boxes lie on."""
        sizes = self._shelf.sizes(doc_id)
        return sizes[self.place(sizes)]

    def place(self, images: Sequence[Any]) -> int:
        """Return which image of a doc the boxes lie on."""
        return len(images) - 1 if self._spec.options.box_image == "last" else 0


# --- other docs' images ---------------------------------------------------------------------------


class WrongImages:
    """The wrong images of a task, computed when first asked for, and the same on every rank.

    Args:
        known: the task.
        read: gives all docs of the split, as ``ask.references.plan`` takes them.
        look: decodes a doc's images and gives what is known of them; None where they cannot be loaded.
    """

    def __init__(self, known: Known, read: Callable[[], Sequence[Doc]], look: Callable[[int], Look | None]) -> None:
        self._known, self._options, self._read, self._look = known, known.spec.options, read, look
        self._evaluated: Sequence[int] | None = None
        self._sampled: dict[int, frozenset[int]] = {}
        self._donors: dict[tuple[int, int], tuple[int, ...]] = {}
        self._lock = threading.RLock()

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together."""
        with self._lock:
            self._evaluated, self._sampled = list(doc_ids), {}

    @property
    def docs(self) -> int:
        """How many docs are evaluated."""
        with self._lock:
            return len(self._docs if self._evaluated is None else self._evaluated)

    @property
    def sampled(self) -> frozenset[int]:
        """The evaluated docs that are also asked on a wrong image, where a fitting image is found."""
        return self.some(self._options.null)

    def some(self, least: int) -> frozenset[int]:
        """Return the evaluated docs of a sample of so many: a smaller sample is part of a larger one."""
        with self._lock:
            if least not in self._sampled:
                known = len(self._docs)
                # where the docs cannot be read, none is known
                chosen = [i for i in (range(known) if self._evaluated is None else self._evaluated) if i < known]
                # docs of a cluster are sampled together
                units = {
                    i: self._keys[i] if (cluster := self._docs[i].cluster) is None else repr(cluster) for i in chosen
                }
                self._sampled[least] = sample(units, least, self._options.seed) if least else frozenset()
            return self._sampled[least]

    def donor(self, doc_id: int) -> int | None:
        """Return the doc whose images replace a doc's images; None where no doc's images fit."""
        return next(iter(self.donors(doc_id, 1)), None)

    def donors(self, doc_id: int, most: int) -> tuple[int, ...]:
        """Return the docs whose images replace a doc's images, each another image, the best first; fewer where fewer fit."""
        with self._lock:
            if (doc_id, most) not in self._donors:
                # where the docs cannot be read, no doc has a donor
                own = self._look(doc_id) if doc_id < len(self._docs) else None
                candidates = () if own is None or not own.sizes else self._ring.candidates(doc_id)
                self._donors[doc_id, most] = choose(own, iter(candidates), self._look, most) if own is not None else ()
            return self._donors[doc_id, most]

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of everything that decides which images are wrong images.

        The digest goes into the task's config: with other docs in the split, the same doc id gets another wrong image.
        """
        units, sources = map(unit_of, self._docs), (doc.source for doc in self._docs)
        return digest([*zip(self._keys, self._alike.labels, units, sources, strict=True)])

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        try:
            return self._read()
        except Exception as error:
            name = self._known.spec.name
            log().warning(f"{name}: its docs cannot be read, so none is asked on a wrong image: {one_line(error)}")
            return []

    @cached_property
    def _alike(self) -> Any:
        return alike(self._docs, self._options.format)[1]

    @cached_property
    def _keys(self) -> list[str]:
        return stable_keys(self._known.plain_rows, self._options.key)

    @cached_property
    def _ring(self) -> Ring:
        units, sources = [unit_of(doc) for doc in self._docs], [doc.source for doc in self._docs]
        return Ring(self._alike, self._keys, units, sources, self._options.seed)


def stable_keys(rows: Any, field: str | None) -> list[str]:
    """Return the stable ids of docs; their numbers where docs hold nothing but images."""
    try:
        return keys_of(rows, field)
    except PatchError:
        return [str(i) for i in range(len(rows))]
