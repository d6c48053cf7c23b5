"""Digests: different things never read alike, and what does not matter changes nothing."""

import json
from argparse import Namespace

import datasets
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.harness.asking import journal as keys

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def spelled(value):
    """A value as text that tells types apart: equal exactly where two values are."""
    if isinstance(value, dict):
        return {"dict": sorted((key, json.dumps(spelled(inner))) for key, inner in value.items())}
    if isinstance(value, list):
        return [spelled(one) for one in value]
    return f"{type(value).__name__} {value!r}"


@given(plain, plain)
def test_only_equal_values_have_equal_digests(one, other):
    assert (keys._digest(one) == keys._digest(other)) == (spelled(one) == spelled(other))


def test_the_order_of_keys_and_addresses_of_functions_do_not_count():
    assert keys._digest({"a": 1, "b": 2}) == keys._digest({"b": 2, "a": 1})
    assert keys._digest([lambda x: x]) == keys._digest([lambda x: x])


def cli(**more):
    return Namespace(
        **{
            "model": "m",
            "model_args": "pretrained=x",
            "gen_kwargs": None,
            "seed": [0, 1, 2, 3],
            "batch_size": 1,
            "limit": None,
            **more,
        }
    )


def test_a_checkpoint_that_was_trained_on_is_another_model(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"old")
    told = [cli(model_args=f"pretrained={tmp_path},dtype=float32"), cli(model_args={"pretrained": str(tmp_path)})]
    before = [keys.of_model(one) for one in told]
    assert before == [keys.of_model(one) for one in told]
    (tmp_path / "model.safetensors").write_bytes(b"newer")
    assert all(one != keys.of_model(other) for one, other in zip(before, told, strict=True))


def test_what_changes_no_answer_changes_no_key():
    assert keys.of_model(cli()) == keys.of_model(cli(batch_size=16, limit=20, device="cuda", output_path="x"))
    assert keys.of_run(cli(), ["a"]) != keys.of_run(cli(), ["b"])


def test_images_count_as_the_dataset_stores_them(tmp_path):
    """Bytes in the table, and files behind paths; nothing is decoded, so a broken image has a digest too."""
    paths = [tmp_path / f"{i}.png" for i in range(2)]
    for i, path in enumerate(paths):
        Image.new("RGB", (4, 4), (i, 0, 0)).save(path)
    by_path = datasets.Dataset.from_dict({"q": ["a", "a"], "image": [str(path) for path in paths]}).cast_column(
        "image", datasets.Image()
    )
    inside = datasets.Dataset.from_dict(
        {"q": ["a", "a"], "image": [{"bytes": path.read_bytes(), "path": None} for path in paths]},
        features=datasets.Features({"q": datasets.Value("string"), "image": datasets.Image()}),
    )
    for rows in (by_path, inside):
        raw = keys._undecoded(rows)
        assert keys._digest(raw[0:1].to_pylist()) != keys._digest(raw[1:2].to_pylist())
    raw = keys._undecoded(by_path)
    before = keys._digest(raw[0:1].to_pylist())
    paths[0].write_bytes(b"broken")
    assert keys._digest(raw[0:1].to_pylist()) != before
    assert keys._undecoded(datasets.Dataset.from_dict({"image": ["a.png"]})) is None
    assert keys._undecoded([{"q": "a"}]) is None
