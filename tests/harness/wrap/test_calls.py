"""Items are copied for a call, since an aggregation may change them."""

import threading

import pytest

from lmms_patch.harness.wrap.calls import copied

ITEMS = {
    "numbers": [3.0, 1.0, 2.0],
    "answers": ["b", None, "a"],
    "lists": [[3, 1], [2]],
    "mappings": [{"hits": [1, 0]}, {"hits": [1]}],
}


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_items_are_copied_to_the_last_list(items):
    before = repr(items)
    made = copied(items)
    assert made == items
    for part in (made, *made, *(part["hits"] for part in made if isinstance(part, dict))):
        if isinstance(part, list):
            part.clear()
    assert repr(items) == before


def test_one_item_twice_stays_one():
    """A sample of docs holds some more than once."""
    item = {"hits": 1}
    first, second = copied([item, item])
    assert first is second is not item


def test_what_cannot_be_copied_is_handed_on():
    lock = threading.Lock()
    assert copied([lock, 1.0]) == [lock, 1.0]
