"""The table of docs × views: ids, tags, what is fetched and kept, and docs that cannot be cut."""

import copy
import gc
import pickle
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from PIL import Image

from lmms_patch.ask.spec import Options, parse
from lmms_patch.ask.views import View
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.docs import TaggedDoc, VariantDocs
from lmms_patch.harness.wrap.shelf import CACHED_DOCS


class Rows:
    """Lazy rows, as a dataset's: makes a row anew at each fetch, and counts the fetches."""

    def __init__(self, count, make):
        self.count, self.make, self.fetched = count, make, []

    def __len__(self):
        return self.count

    def __getitem__(self, doc_id):
        doc_id = range(self.count)[doc_id]
        self.fetched.append(doc_id)
        return self.make(doc_id)


class Base:
    """Shows the images of a row; counts how often it is asked."""

    def __init__(self):
        self.shown = []

    def doc_to_visual(self, doc):
        self.shown.append(doc["number"])
        return doc["images"]


class ChatBase(Base):
    def doc_to_messages(self, doc):
        self.shown.append(doc["number"])
        return [
            {
                "role": "user",
                "content": [{"type": "image", "url": image} for image in doc["images"]]
                + [{"type": "text", "text": "hi"}],
            }
        ]


def flat(doc_id, size=(30, 30)):
    """An image in which each pixel is its doc, column and row."""
    array = np.empty((size[1], size[0], 3), np.uint8)
    array[..., 0] = doc_id
    array[..., 1] = np.arange(size[0]) % 256
    array[..., 2] = np.arange(size[1])[:, None] % 256
    return Image.fromarray(array)


def row(doc_id, *sizes):
    return {"number": doc_id, "images": [flat(doc_id, size) for size in sizes or [(30, 30)]]}


def table(name="gqa_rci3", count=4, make=row, base=None, **cutting) -> VariantDocs:
    rows, spec = Rows(count, make), replace(parse(name), options=Options(null=0, **cutting))
    known = SimpleNamespace(rows=rows, plain_rows={}, base=base or Base(), spec=spec, own_messages=True)
    return VariantDocs(known, list)


def shown(table, doc_id, view) -> list[Image.Image]:
    return table.visuals(table[table.id(doc_id, view)])


def boxes(images) -> list[tuple[int, ...]]:
    """The rectangle that each image is of, as its pixels say: (left, top, right, bottom)."""
    arrays = [np.asarray(image) for image in images]
    return [(int(a[0, 0, 1]), int(a[0, 0, 2]), int(a[-1, -1, 1]) + 1, int(a[-1, -1, 2]) + 1) for a in arrays]


# --- ids ----------------------------------------------------------------------------------------


def test_an_id_is_doc_times_views_plus_view():
    rci3 = table("gqa_rci3")
    assert [rci3.id(doc_id, view) for doc_id, view in [(0, 0), (0, 9), (1, 0), (3, 4)]] == [0, 9, 10, 34]


def test_every_id_fetches_its_own_doc_and_view():
    rci2 = table("gqa_rci2", count=3)
    fetched = [(rci2[rci2.id(doc_id, view)], doc_id, view) for doc_id in range(3) for view in range(5)]
    for doc, doc_id, view in fetched:
        assert (doc["number"], doc.doc_id, doc.view, doc.table) == (doc_id, doc_id, view, rci2)


def test_an_id_is_answered_by_its_own_table_whichever_is_asked():
    rci3, rci2 = table("gqa_rci3"), table("gqa_rci2", make=lambda doc_id: row(doc_id + 100))
    doc = rci3[rci2.id(2, 4)]
    assert (doc["number"], doc.view, doc.table) == (102, 4, rci2)


def test_a_plain_number_is_read_by_the_table_that_is_asked():
    rci3 = table("gqa_rci3")
    for plain in (34, np.int64(34)):
        doc = rci3[plain]
        assert (doc.doc_id, doc.view) == (3, 4)


@pytest.mark.parametrize(
    "copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, lambda x: copy.deepcopy([x])[0]]
)
def test_a_copied_id_is_a_plain_int(copied):
    rci3 = table()
    plain = copied(rci3.id(3, 4))
    assert type(plain) is int
    assert plain == 34


# --- tagged docs --------------------------------------------------------------------------------


def tagged() -> TaggedDoc:
    rci3 = table()
    return rci3[rci3.id(3, 4)]


def test_a_tagged_doc_is_the_plain_row_to_scorers():
    doc = tagged()
    assert isinstance(doc, dict)
    assert list(doc) == ["number", "images"]
    assert {**doc}.keys() == {"number", "images"}


def test_a_pickled_doc_is_a_plain_dict_without_the_table():
    doc = TaggedDoc({"number": 3}, 3, 4, table(count=1000))
    back = pickle.loads(pickle.dumps(doc))
    assert type(back) is dict
    assert back == {"number": 3}
    assert len(pickle.dumps(doc)) < 100


@pytest.mark.parametrize("copied", [copy.copy, TaggedDoc.copy, copy.deepcopy])
def test_a_copied_doc_keeps_its_tag_and_does_not_copy_the_table(copied):
    doc = tagged()
    twin = copied(doc)
    assert (type(twin), twin.doc_id, twin.view, twin.table) == (TaggedDoc, 3, 4, doc.table)
    twin["number"] = "changed"
    assert doc["number"] == 3


def test_changes_to_a_fetched_doc_do_not_reach_the_next():
    rci3 = table()
    rci3[0].clear()
    assert rci3[1]["number"] == 0


def dataset(count=3):
    return datasets.Dataset.from_list([{"number": i} for i in range(count)])


# --- fetched once, and not kept for long --------------------------------------------------------


@pytest.mark.parametrize("name", ["gqa_rci", "gqa_occlude3"])
def test_a_doc_is_fetched_and_shown_once_for_all_its_views(name):
    base = Base()
    every = table(name, count=20, base=base)
    for doc_id in range(20):
        for view in range(len(every.views)):
            shown(every, doc_id, view)
    assert every.rows.fetched == base.shown == list(range(20))


def test_an_image_is_decoded_once_for_all_its_views(monkeypatch, tmp_path):
    """Here the row holds encoded bytes, and decoding is ours."""
    flat(0).save(tmp_path / "0.png")
    encoded = {"bytes": (tmp_path / "0.png").read_bytes(), "path": None}
    every = table("gqa_rci3", count=1, make=lambda doc_id: {"number": doc_id, "images": [encoded]})
    opened = []
    original = Image.open
    monkeypatch.setattr(Image, "open", lambda *args, **kwargs: opened.append(1) or original(*args, **kwargs))
    found = [boxes(shown(every, 0, view)) for view in range(1, 10)]
    assert found[0] == [(0, 0, 10, 10)]
    assert found[8] == [(20, 20, 30, 30)]
    assert len(opened) == 1


def test_batches_that_hold_several_docs_fetch_each_once():
    """Batches of 8 over docs of 10 views: docs are fetched first, then shown."""
    base = Base()
    every = table("gqa_rci3", count=16, base=base)
    ids = [every.id(doc_id, view) for doc_id in range(16) for view in range(10)]
    for start in range(0, len(ids), 8):
        for doc in [every[i] for i in ids[start : start + 8]]:
            every.visuals(doc)
    assert every.rows.fetched == list(range(16))


def test_no_more_docs_are_kept_than_the_limit():
    born = []

    def make(doc_id):
        images = row(doc_id)["images"]
        born.append(weakref.ref(images[0]))
        return {"number": doc_id, "images": images}

    every = table("gqa_rci2", count=5 * CACHED_DOCS, make=make)
    for doc_id in range(5 * CACHED_DOCS):
        for view in range(5):
            shown(every, doc_id, view)
    gc.collect()
    alive = [number for number, image in enumerate(born) if image() is not None]
    assert alive == list(range(4 * CACHED_DOCS, 5 * CACHED_DOCS)), "the last ones, and no others"


def test_a_fetch_that_failed_is_tried_again():
    tries = []

    def make(doc_id):
        tries.append(doc_id)
        if len(tries) == 1:
            raise OSError("busy")
        return row(doc_id)

    every = table(make=make)
    with pytest.raises(OSError, match="busy"):
        every[0]
    assert every[0]["number"] == 0


# --- threads ------------------------------------------------------------------------------------


def slow(doc_id):
    time.sleep(0.005)
    return row(doc_id)


def test_16_threads_fetch_each_doc_once_and_get_their_own_views():
    """As many docs as are kept, asked in all orders."""
    base = Base()
    every = table("gqa_rci3", count=CACHED_DOCS, make=slow, base=base)
    asked = [(doc_id, view) for doc_id in range(CACHED_DOCS) for view in range(1, 10)] * 4
    order = np.random.default_rng(0).permutation(len(asked))
    with ThreadPoolExecutor(16) as pool:
        found = dict(zip(order, pool.map(lambda i: shown(every, *asked[i]), order), strict=True))
    for i, (doc_id, view) in enumerate(asked):
        (image,) = found[i]
        left, top = 10 * ((view - 1) % 3), 10 * ((view - 1) // 3)
        np.testing.assert_array_equal(np.asarray(image), np.asarray(flat(doc_id))[top : top + 10, left : left + 10])
    assert sorted(every.rows.fetched) == sorted(base.shown) == list(range(CACHED_DOCS))


def test_one_slow_doc_does_not_hold_up_the_others():
    waiting, go_on = threading.Event(), threading.Event()

    def make(doc_id):
        if doc_id == 0:
            waiting.set()
            assert go_on.wait(10)
        return row(doc_id)

    every = table(make=make)
    with ThreadPoolExecutor(1) as pool:
        slow_one = pool.submit(lambda: every[every.id(0, 0)])
        assert waiting.wait(10)
        assert every[every.id(1, 0)]["number"] == 1
        go_on.set()
        assert slow_one.result(10)["number"] == 0


# --- what a doc shows ---------------------------------------------------------------------------


def test_the_full_view_is_a_copy_of_the_whole():
    every = table()
    (image,) = shown(every, 3, 0)
    assert image.tobytes() == flat(3).tobytes()
    image.paste((0, 0, 0), (0, 0, 30, 30))
    assert shown(every, 3, 0)[0].tobytes() == flat(3).tobytes()


def test_a_blind_doc_has_no_images_and_all_its_text():
    blind = table("gqa_blind", base=ChatBase())
    assert shown(blind, 0, 0) == []
    assert blind.messages(blind[0]) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


@pytest.mark.parametrize("content", ["hi", [{"type": "text", "text": "hi"}]])
def test_messages_of_the_bases_own_get_the_line_after_the_users_last_words(content):
    line = "guess"
    before = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "first"},
        {"role": "user", "content": content},
    ]
    found = media.with_text([*before, {"role": "assistant", "content": "so"}], View("blind", adds=line))
    want = "hi\nguess" if content == "hi" else [*content, {"type": "text", "text": "guess"}]
    assert found == [*before[:2], {"role": "user", "content": want}, {"role": "assistant", "content": "so"}]
    assert media.with_text(before, View("blind")) == before
    assert media.with_text([], View("blind", adds=line)) == []


def test_a_too_small_image_is_excluded_for_that_grid_only_and_shown_in_full():
    """29×2 pixels: enough for the 2×2 grid of ``rci``, not for its 3×3 grid."""
    every = table("gqa_rci", count=1, make=lambda doc_id: row(doc_id, (29, 2)))
    assert every.cutter.why_unusable(0, 2) is None
    assert every.cutter.why_unusable(0, 3) == "image of 29x2 pixels is too small"
    found = [boxes(shown(every, 0, view)) for view in range(14)]
    whole = [(0, 0, 29, 2)]
    assert found[0] == whole
    assert found[1:5] == [[(0, 0, 14, 1)], [(14, 0, 29, 1)], [(0, 1, 14, 2)], [(14, 1, 29, 2)]]
    assert found[5:] == [whole] * 9


def test_the_same_cell_of_every_image():
    every = table("gqa_rci3", make=lambda doc_id: row(doc_id, (30, 30), (60, 90)))
    assert boxes(shown(every, 0, 6)) == [(20, 10, 30, 20), (40, 30, 60, 60)]


@pytest.mark.parametrize("base", [Base(), ChatBase()], ids=["simple", "chat"])
def test_images_first_cuts_only_the_first(base):
    every = table("gqa_rci3", make=lambda doc_id: row(doc_id, (30, 30), (60, 90), (7, 2)), base=base, images="first")
    if isinstance(base, ChatBase):
        images = [
            part["url"] for part in every.messages(every[every.id(0, 6)])[0]["content"] if part["type"] == "image"
        ]
    else:
        images = shown(every, 0, 6)
    assert boxes(images) == [(20, 10, 30, 20), (0, 0, 60, 90), (0, 0, 7, 2)]
    assert every.cutter.why_unusable(0, 3) is None, "the small one is not cut"


def test_a_doc_that_cannot_be_cut_is_shown_as_the_base_shows_it_and_left_out():
    """A sound among images, found during a run: the run goes on, and the reason is known."""
    every = table("gqa_rci3", make=lambda doc_id: {"number": doc_id, "images": ["sound.wav"]})
    assert [shown(every, 0, view) for view in (0, 5)] == [["sound.wav"]] * 2
    assert "sound.wav" in every.shelf.of(0).problem
    assert "sound.wav" in every.cutter.why_unusable(0, 3)


def test_the_base_is_shown_a_plain_row():
    """Its functions may dump or compare docs."""
    kinds = []

    class Curious(Base):
        def doc_to_visual(self, doc):
            kinds.append(type(doc))
            doc.pop("number")
            return doc["images"]

    every = table(base=Curious())
    shown(every, 0, 0)
    assert kinds == [dict]
    assert every[1]["number"] == 0, "and may change it"


def test_what_is_known_of_a_doc_holds_while_it_is_decoded_again(monkeypatch):
    """Another thread that shows the doc meanwhile must not take it for one without an image."""
    every = table("gqa_rci3", count=2 * CACHED_DOCS)
    shown(every, 0, 1)
    for doc in range(1, CACHED_DOCS + 2):
        shown(every, doc, 1)
    meanwhile, decode = [], media.decode

    def watching(medium):
        meanwhile.append((every.cutter.why_unusable(0, 3), every.sizes(0)))
        return decode(medium)

    monkeypatch.setattr(media, "decode", watching)
    shown(every, 0, 2)
    assert meanwhile
    assert all(why is None and sizes for why, sizes in meanwhile)


def test_a_doc_that_breaks_in_the_middle_of_its_views_is_left_out(monkeypatch):
    every = table("gqa_rci3", count=2 * CACHED_DOCS)
    shown(every, 0, 1)
    for doc in range(1, CACHED_DOCS + 2):
        shown(every, doc, 1)

    def broken(medium):
        raise media.CannotWrapError("the file is gone")

    monkeypatch.setattr(media, "decode", broken)
    shown(every, 0, 2)
    assert every.cutter.why_unusable(0, 3) == "the file is gone"


# --- what a doc shows -----------------------------------------------------------------------------


def test_docs_that_show_the_same_are_known_by_it_and_no_others():
    same, other = table(count=3), table(count=3, make=lambda doc_id: row(doc_id + (doc_id == 2)))
    seen = [table(count=3).shelf.known(i).sight for i in range(3)]
    assert len(set(seen)) == 3
    assert [same.shelf.known(i).sight for i in range(3)] == seen
    assert [other.shelf.known(i).sight == seen[i] for i in range(3)] == [True, True, False]
    sizes = [[(30, 30)], [(30, 31)], [(31, 30)], [(30, 30), (30, 30)], [(3000, 20)], [(1, 1)]]
    assert len({table(make=lambda doc_id, own=own: row(0, *own)).shelf.known(0).sight for own in sizes}) == len(sizes)


def test_a_doc_that_shows_nothing_or_cannot_be_cut_has_no_digest():
    assert table(make=lambda doc_id: {"number": doc_id, "images": []}).shelf.known(0).sight == ""
    assert table(make=lambda doc_id: {"number": doc_id, "images": ["video.mp4"]}).shelf.known(0).sight == ""
