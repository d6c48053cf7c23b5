"""What a ``doc_to_visual`` shows, as a shipped table says that was read from its code, and what is refused by it."""

import shutil

import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import plugin
from lmms_patch.harness.names import configs
from lmms_patch.harness.names.facts import UNREAD, Facts, Media
from lmms_patch.harness.names.facts import shown_by as known_of
from scripts.host.shown import place, table
from tests.places import ROOT


def test_the_table_is_what_the_code_says():
    """Where this fails: ``python scripts/host/shown.py --write`` writes it."""
    assert place().read_text(encoding="utf-8") == table()


def test_the_table_holds_for_every_file_with_the_same_bytes(tmp_path):
    file, name = shutil.copy(ROOT / "tasks" / "mosaic" / "utils.py", tmp_path), "doc_to_visual"
    known = known_of(file, name)
    assert known.media == {"image"}
    assert known_of(file, "another") == UNREAD
    with open(file, "a") as changed:
        changed.write("# changed\n")
    assert known_of(file, name) == UNREAD


TIME = [name for name, kind in KINDS.items() if kind.needs_video]
CELLS = ["rci", "pcri", "blank", "swap", "shuffle", "occlude"]


def facts(media, certain=False):
    return Facts("toy", shows=True, shown=Media(frozenset(media.split()), certain))


def spec(kind):
    return WrapSpec("toy", KINDS[kind], KINDS[kind].default_grids or (4,))


@pytest.mark.parametrize("kind", [*TIME, *CELLS])
def test_only_what_is_certain_is_refused_before_the_data(kind):
    """A guess may be wrong, so it refuses nothing; videos take every kind, images all but those in time, sound none."""
    for media in (
        "clip",
        "image",
        "sound",
        "stretch",
        "frames",
        "unknown",
        "clip image",
        "image unknown",
        "sound unknown",
    ):
        assert configs.verdict(facts(media), spec(kind))[0] != "no"
    assert configs.verdict(facts("clip", True), spec(kind)) == ("wraps", "")
    assert (configs.verdict(facts("image", True), spec(kind))[0] == "no") is (kind in TIME)
    assert "plays sound" in configs.verdict(facts("sound", True), spec(kind))[1]
    assert (configs.verdict(facts("image"), spec(kind))[0] == "unfit") is (kind in TIME)
    assert configs.verdict(facts("sound"), spec(kind))[0] == "unfit"


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.suffix])
def test_videos_are_left_out_only_where_nothing_is_shown(monkeypatch, kind):
    """A benchmark's videos may be hundreds of gigabytes, and a text-only kind needs none of them.

    Every other kind needs them all.
    """
    for name in ("patch_runs",):
        monkeypatch.setattr(plugin, name, lambda: None)
    monkeypatch.setattr(configs, "check", lambda *_: None)
    monkeypatch.setattr(configs, "without_videos", lambda *_: {"dataset_kwargs": {}})
    loaded = []

    class Manager:
        pass

    def native(name, update_config, parent_name):
        loaded.append((update_config, manager._lmms_patch_text_only))
        return {}

    manager = Manager()
    plugin._load_wrapped(manager, native, spec(kind) if kind != "tst" else WrapSpec("toy", KINDS[kind]), {})
    assert loaded == [({"dataset_kwargs": {}}, True) if kind in ("blind", "blindguess", "tst") else (None, False)]
