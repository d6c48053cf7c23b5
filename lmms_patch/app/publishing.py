"""A pruned benchmark as a dataset that others can load: ``lmms-patch prune --to`` and ``--push``.

| file | content |
|---|---|
| ``README.md`` | the dataset card |
| ``eval.yaml`` | what the hub knows a benchmark by |
| ``published.json`` | what the folder holds (``tst.formats.PublishedJson``) |
| ``data/``, ``task/`` | what ``datasets`` and lmms-eval load (``harness.tst.published``) |
| ``pruning/`` | lists of ids, ``removed.csv``, ``categories.csv`` and ``pruned.json`` of the pruning (``tst.pruned``) |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch import files
from lmms_patch.app import hub
from lmms_patch.app.options import PruneArguments
from lmms_patch.errors import OptionError, PatchError
from lmms_patch.tst.formats import OriginalJson, PublishedJson

if TYPE_CHECKING:
    from lmms_patch.app.pruning import Pruning

LISTS = ("kept_ids.txt", "removed_ids.txt", "removed.csv", "categories.csv", "pruned.json")


def check(arguments: PruneArguments) -> str:
    """Check before any work whether the dataset could be written and sent.

    Return the repository as ``owner/name``, "" without one.

    Raises:
        PatchError: options that do not fit together, a folder that is taken, a base that cannot be published so, or a
            repository (``hub.check``).
    """
    a, folder = arguments, arguments.dataset
    if folder is None:
        given = next(
            (
                name
                for name, value in (("--copy", a.copy_docs), ("--license", a.license), ("--public", a.public))
                if value
            ),
            None,
        )
        if given is not None:
            raise OptionError(f"{given} is about the dataset of --to or --push; type --to DIR too")
        return ""
    if a.public and a.push is None:
        raise OptionError("--public is about the repository of --push; type --push OWNER/NAME too")
    if a.copy_docs and not a.license:
        raise OptionError(
            "--copy gives the docs on, so it needs their licence; type --license with what the original's card names, such as cc-by-4.0"
        )
    # ``files.folder`` replaces the whole folder, the pruning in it too.
    if a.folder.resolve().is_relative_to(folder.resolve()):
        raise OptionError(
            f"--to {folder}: the pruning itself is written to {a.folder}; name another folder, such as {a.folder / 'dataset'}"
        )
    files.check_folder(folder, hub.MARK, "--to", "an earlier --to")
    from lmms_patch.harness.tst import published

    # last of all: it loads lmms-eval, which takes long
    published.check(a.task, copy=a.copy_docs, include_path=a.include_path)
    return "" if a.push is None else hub.check(a.push, a.public)


def publish(
    done: Pruning,
    settings: Mapping[str, Any],
    kept: Sequence[str],
    key: str | None,
    repository: str,
    tell: Callable[[str], None],
) -> Pruning:
    """Write the dataset of a finished pruning, and send the dataset where asked; return the pruning with both.

    Args:
        done: the pruning, whose folder is written.
        settings: as in ``pruned.json``.
        kept: the stable ids of the kept docs.
        key: the field that the ids come from; None where they are digests.
        repository: as ``check`` returned it; "": nothing is sent.
        tell: told of what is being written and sent.

    Raises:
        PatchError: no doc was removed, the folder cannot be written, or the hub does not take it.
    """
    folder = done.arguments.dataset
    assert folder is not None
    if not len(done.found.removed):
        raise PatchError(
            f"{done.arguments.task}: no doc was removed, so there is no pruned benchmark to write to {folder}"
        )
    tell(f"writing the dataset: {folder}")
    _write(done, folder, settings, kept, key)
    if not repository:
        return dataclasses.replace(done, dataset=folder)
    tell(f"sending {folder} to {repository}")
    message = f"{done.arguments.task} pruned by lmms-patch: {len(done.found.kept)} of {len(done.items)} docs"
    return dataclasses.replace(
        done, dataset=folder, pushed=hub.push(folder, repository, done.arguments.public, message)
    )


def _write(done: Pruning, folder: Path, settings: Mapping[str, Any], kept: Sequence[str], key: str | None) -> None:
    from lmms_patch.harness.tst import published
    from lmms_patch.present import card

    asked = done.arguments
    # Written beside and moved at the end: whole or not at all.
    with files.folder(folder, "--to") as made:
        written = published.write(
            asked.task, kept, made, copy=asked.copy_docs, include_path=asked.include_path, key=key
        )
        for name in LISTS:
            files.write(made / "pruning" / name, (done.folder / name).read_bytes())
        original = written.original
        about = PublishedJson(
            schema=1,
            task=written.task_file.stem,
            base=asked.task,
            form="copy" if asked.copy_docs else "filter",
            docs=len(done.items),
            kept=len(kept),
            original=OriginalJson(
                repository=original.repository, config=original.config, split=original.split, revision=original.revision
            ),
        )
        facts = card.Facts(
            published=about,
            splits=written.splits,
            whole=original.whole,
            license=asked.license or "",
            citation=original.citation,
            settings=settings,
            stopped=done.found.stopped,
            judged=done.judged,
            blind=done.blind,
            categories=done.categories,
        )
        files.write(made / hub.MARK, card.to_json(about))
        files.write(made / "eval.yaml", card.eval_yaml(about))
        files.write(made / "README.md", card.card(facts))
