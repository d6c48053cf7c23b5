"""Several ranks ask equally many portions of equal size, whatever each has left: a model that is spread over GPUs waits for all of them."""

import threading
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from lmms_patch.harness.asking import in_portions as portions
from lmms_patch.harness.asking import rounds as ranks
from lmms_patch.harness.asking.in_portions import InPortions
from lmms_patch.harness.asking.rounds import Ranks, Round, place_of
from tests.harness.askers import Gathering


class Cache:
    """Stands for the model: notes the size of each call."""

    def __init__(self):
        self.calls = []

    def execute(self, model, kind, requests):
        self.calls.append(len(requests))
        return [f"{request.doc_id} {request.idx}" for request in requests]


@pytest.mark.parametrize("loads", [(100, 100), (100, 37), (40, 0), (0, 33, 90), (0, 0)], ids=str)
def test_all_ranks_ask_alike(loads, monkeypatch):
    gathering = Gathering(len(loads))
    monkeypatch.setattr(ranks, "_distributed", lambda: gathering)
    monkeypatch.setattr(Ranks, "here", classmethod(lambda cls: cls(gathering.local.number, len(loads))))
    monkeypatch.setattr(portions, "FIRST", 16)
    found = {}

    def work(number):
        gathering.local.number = number
        cli = SimpleNamespace(batch_size=4, model=None)
        in_portions = InPortions({}, cache := Cache(), None, cli)
        requests = [
            SimpleNamespace(task_name="t", doc_id=number + len(loads) * (i // 5), idx=i % 5, args=())
            for i in range(loads[number])
        ]
        padded = requests + requests[-1:] * (max(loads) - len(requests)) if requests else []  # as the host pads
        bar = tqdm(disable=True)
        found[number] = cache.calls, in_portions.ask(None, "generate_until", Round(padded), bar), padded

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(loads))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == len(loads), "no rank waits for ever"
    sizes = [calls for calls, _, padded in found.values() if padded]
    assert all(calls == sizes[0] for calls in sizes)
    assert all(sum(calls) == max(loads) for calls in sizes)
    for _, answers, padded in found.values():
        assert answers == {place_of(request): f"{request.doc_id} {request.idx}" for request in padded}
