import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.runs.scoring import plain, scalar


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (1, 1.0),
        (0.25, 0.25),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        ({"score": 0.7, "other": 1}, 0.7),
        ({"score": None}, None),
        ({"other": 1}, None),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
        ("1", None),
        ((1, 2), None),
    ],
)
def test_scalar_of_native_items(item, expected):
    assert scalar(item) == expected


def test_a_number_too_large_for_any_score_is_none():
    assert scalar(10**400) is scalar({"score": -(10**400)}) is None


def test_scalar_takes_the_first_key_that_holds_a_number():
    assert scalar({"a": "x", "b": 2, "score": 3}, ("a", "b", "score")) == 2.0


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_like)
def test_plain_is_valid_strict_json(value):
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


def test_plain_unwraps_subclasses_of_str():
    """A scorer may return them, and msgspec, which makes the record, refuses them."""

    class Marked(str):
        pass

    found = plain({"pred": Marked("red"), "all": [Marked("a")]})
    assert found == {"pred": "red", "all": ["a"]}
    assert {type(found["pred"]), type(found["all"][0])} == {str}


def test_plain_unwraps_numpy_and_tuples():
    value = {"a": np.float32(0.5), ("x", 1): np.array([1, 2]), "s": {3, 1}, "n": math.nan, "o": object}
    assert plain(value) == {"a": 0.5, "('x', 1)": [1, 2], "s": [1, 3], "n": None, "o": str(object)}
