"""Every number of runs of the first version, as this version makes it: ``tests.stored`` says what is compared."""

from lmms_patch.app.cli import main
from tests.stored import differences, numbers, stored, unpack


def test_every_number_of_earlier_runs_stays(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    made, before = numbers(unpack(tmp_path), out, main), stored()
    assert made.keys() == before.keys()
    assert not list(differences(before, made))
    kinds = {name.split()[0] for name, of in made.items() if of["wrote"]}
    assert kinds == {"analyze", "gate", "report", "compare", "leaderboard", "magic"}


def test_a_difference_is_seen():
    before = stored()
    task = before["analyze mosaic"]["wrote"]["runs"][0]["tasks"][0]["metrics"]
    name = next(key for key, value in task.items() if isinstance(value, float))
    task[name] = task[name] * (1 + 1e-15) + 5e-324
    assert len(list(differences(stored(), before))) == 1
