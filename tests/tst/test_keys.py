"""Stable ids, against ids made by hand from their definition."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import datasets
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.tst import pruned_filter
from lmms_patch.tst.keys import keys_of
from tests.sizes import examples

ROWS = [
    {"q": "Où?", "n": 1, "meta": {"b": [1, 2], "a": None}},
    {"q": "What?", "n": 2, "meta": {"b": [], "a": "x"}},
    {"q": "Who?", "n": 3, "meta": {"b": [3], "a": "y"}},
]


def by_hand(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def image(shade):
    return Image.new("RGB", (4, 4), (shade, 0, 0))


def with_images(rows, **more):
    """The rows as a dataset with an image each."""
    plain = datasets.Dataset.from_list(rows)
    features = datasets.Features({**plain.features, "image": datasets.Image(), **more})
    return datasets.Dataset.from_list([{**row, "image": image(i)} for i, row in enumerate(rows)], features=features)


def test_the_id_is_the_start_of_a_hash_of_the_canonical_json():
    assert keys_of(ROWS)[0] == by_hand('{"meta":{"a":null,"b":[1,2]},"n":1,"q":"O\\u00f9?"}')
    assert keys_of(datasets.Dataset.from_list(ROWS)) == keys_of(ROWS)


def test_nan_counts_as_null_and_times_as_their_text():
    values = datasets.Dataset.from_dict({"x": [float("nan"), None, 0.5]})
    assert keys_of(values) == [by_hand('{"x":null}'), by_hand('{"x":null}') + "#2", by_hand('{"x":0.5}')]
    assert keys_of([{"x": np.float32("nan")}, {"x": np.int64(3)}]) == [by_hand('{"x":null}'), by_hand('{"x":3}')]
    day = datasets.Dataset.from_dict({"t": [np.datetime64("2024-05-01T00:00:00", "s")]})
    assert keys_of(day) == [by_hand('{"t":"2024-05-01 00:00:00"}')]


@given(st.permutations(range(12)), st.integers(0, 12))
@examples(30)
def test_another_order_and_added_docs_change_no_id(order, place):
    docs = [{"q": f"question {i % 5}", "a": i} for i in range(12)]
    expected = {row["a"]: key for row, key in zip(docs, keys_of(docs), strict=True)}
    moved = [docs[i] for i in order]
    moved.insert(place, {"q": "new", "a": 99})
    found = {row["a"]: key for row, key in zip(moved, keys_of(moved), strict=True)}
    assert {a: found[a] for a in expected} == expected
    assert len(set(found.values())) == 13


def test_later_docs_of_the_same_content_are_numbered_in_dataset_order():
    same, other = {"q": "same"}, {"q": "other"}
    first = by_hand('{"q":"same"}')
    assert keys_of([same, other, same, same]) == [first, by_hand('{"q":"other"}'), f"{first}#2", f"{first}#3"]


def test_media_do_not_count_whether_by_feature_or_by_value():
    plain = keys_of(ROWS)
    assert keys_of(with_images(ROWS)) == plain
    assert (
        keys_of(
            [
                {**row, "image": image(i), "raw": b"12", "more": [{"clip": bytearray(b"3")}]}
                for i, row in enumerate(ROWS)
            ]
        )
        == plain
    )
    features = datasets.Features(
        {
            **datasets.Dataset.from_list(ROWS).features,
            "several": datasets.List(datasets.Image()),
            "nested": {"picture": datasets.Image(), "caption": datasets.Value("string")},
            "sound": datasets.Audio(),
            "clip": datasets.Video(),
            "raw": datasets.Value("binary"),
            "raws": datasets.List({"raw": datasets.Value("large_binary")}),
        }
    )
    media = {
        "several": [image(1)],
        "nested": {"picture": image(2), "caption": "c"},
        "sound": None,
        "clip": None,
        "raw": b"1",
        "raws": [{"raw": b"2"}],
    }
    assert keys_of(datasets.Dataset.from_list([{**row, **media} for row in ROWS], features=features)) == plain


def test_a_field_counts_as_media_where_any_doc_holds_some():
    """A dataset's features say so of docs without an image too."""
    rows = [{"q": "a", "image": None}, {"q": "b", "image": image(1)}]
    assert keys_of(rows) == keys_of([{"q": "a"}, {"q": "b"}])


def test_a_selection_and_another_format_have_the_same_ids():
    rows = datasets.Dataset.from_list(ROWS)
    assert keys_of(rows.select([2, 0])) == [keys_of(ROWS)[2], keys_of(ROWS)[0]]
    assert keys_of(rows.with_format("numpy")) == keys_of(ROWS)
    assert keys_of(rows.select([])) == []


def test_a_field_gives_the_ids():
    assert keys_of(with_images(ROWS), "n") == ["1", "2", "3"]
    assert keys_of(ROWS, "q") == ["Où?", "What?", "Who?"]
    dotted = [{"a.b": "own", "a": {"b": "inner"}}]
    assert (keys_of(dotted, "a.b"), keys_of(dotted[:0] + [{"a": {"b": "inner"}}], "a.b")) == (["own"], ["inner"])


def test_the_copied_file_gives_the_same_ids_in_another_process_without_lmms_patch(tmp_path):
    """A fresh interpreter that sees the standard library only: no site-packages, another hash seed."""
    shutil.copy(pruned_filter.__file__, tmp_path / "copied.py")
    (tmp_path / "rows.json").write_text(json.dumps(ROWS + ROWS))
    code = "import copied, json; print(json.dumps([copied.keys_of(json.load(open('rows.json'))), copied.keys_of([{'id': 5}], 'id')]))"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for seed in ("1", "2"):
        command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"]
        done = subprocess.run(
            command, cwd=tmp_path, env={**env, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == [keys_of(ROWS + ROWS), ["5"]]


def test_the_copied_file_reads_datasets_alike(tmp_path):
    spec = importlib.util.spec_from_file_location("copied", shutil.copy(pruned_filter.__file__, tmp_path / "copied.py"))
    copied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copied)
    assert copied.keys_of(with_images(ROWS)) == keys_of(ROWS)
