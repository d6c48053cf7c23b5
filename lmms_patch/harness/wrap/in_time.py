"""Find questions about videos that name a time in the clip, and prompts that hold the subtitles of the whole clip."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lmms_patch.ask.references import own_question
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.subtitles import with_subtitles
from lmms_patch.ask.timeline import asked_times, points_into_clip, questions_in
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.golds import Golds, field
from lmms_patch.text import log


class InTime:
    """The questions of a task whose clips are cut in time.

    Args:
        spec: what was asked.
        golds: what is known of the docs.
        rows: gives the docs without media.
    """

    def __init__(self, spec: WrapSpec, golds: Golds, rows: Callable[[], Any]) -> None:
        self._spec, self._golds, self._rows = spec, golds, rows

    def pointing(self, doc_id: int) -> str:
        """Return what in a doc's question names a moment of the clip; "" where nothing does."""
        return self._pointing.get(doc_id, "")

    @functools.cached_property
    def _pointing(self) -> dict[int, str]:
        """What names a moment of the clip, by doc id: the category, if listed by the option ``timeline``, or words of the question.

        All docs are read together, since what most prompts say is no question.
        """
        options, rows = self._spec.options, self._rows()
        out: dict[int, str] = {}
        named = set(map(str, options.timeline or ()))
        docs = self._golds.read()
        prompts = questions_in([doc.asked.prompt for doc in docs], [doc.asked.choices for doc in docs])
        for doc, asked in zip(docs, prompts, strict=True):
            category = str(field(rows[doc.doc_id], options.category)) if named else ""
            question = own_question(rows[doc.doc_id]) or asked
            words = (
                f"category {category}"
                if category in named
                else points_into_clip(question, doc.asked.choices) or asked_times(doc.asked.prompt)
            )
            out |= {doc.doc_id: words} if words else {}
        return out

    @functools.cached_property
    def subtitled(self) -> int:
        """How many docs' prompts hold the subtitles of the whole clip; each part of the clip is asked with all of them."""
        try:
            docs, rows = self._golds.read(), self._rows()
            return sum(
                with_subtitles([doc.asked.prompt for doc in docs], [own_question(rows[doc.doc_id]) for doc in docs])
            )
        except Exception as error:
            log().warning(
                f"{self._spec.name}: its prompts cannot be read, so nobody knows whether they hold subtitles: {one_line(error)}"
            )
            return 0
