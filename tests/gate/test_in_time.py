"""The shipped rules for videos, on runs whose truth is planted: the whole clip is needed, one segment is enough, nobody watches."""

from tests.gate.running import gate, refused
from tests.making import lean
from tests.making.runs import knows, never_looks, one_cell_knows, world_run, write_run


def ran(folder, **worlds):
    """A run of some benchmarks in four segments."""
    write_run(folder, {f"{base}_trci4": world_run(say, grid=4, kind="trci", base=base) for base, say in worlds.items()})
    return folder


def test_a_benchmark_is_released_where_its_questions_need_the_whole_clip(capsys, tmp_path):
    ran(tmp_path / "out" / "time", order=knows(0.9, 0.0), still=one_cell_knows, radio=never_looks)
    refused(
        gate(capsys, tmp_path, tmp_path / "out", "video-release"),
        "kind tst matches nothing; there is trci",
    )
    lean.write(tmp_path / "out" / "tst", [lean.stressed(n=2000, accuracy=0.25)])
    ended = gate(capsys, tmp_path, tmp_path / "out", "video-release")
    assert ended.status == 1
    segments = {one["task"]: one for one in ended.json["verdicts"] if one["rule"] == "needs more than one segment"}
    assert {task: one["verdict"] for task, one in segments.items()} == {
        "order_trci4": "pass",
        "still_trci4": "fail",
        "radio_trci4": "fail",
    }
    assert segments["order_trci4"]["metric"] == "trci4"
    assert segments["order_trci4"]["value"]["value"] == 1.0  # no segment is ever right
    assert segments["still_trci4"]["value"]["value"] == 0.0  # the first segment knows what the clip knows
    watched = {one["task"]: one["verdict"] for one in ended.json["verdicts"] if one["rule"] == "needs the clip"}
    assert watched == {"order_trci4": "pass", "still_trci4": "pass", "radio_trci4": "fail"}
    others = [one["verdict"] for one in ended.json["verdicts"] if one["task"] == "order_trci4"]
    assert set(others) == {"pass"}


def test_a_model_gets_worse_in_its_score_or_where_it_no_longer_joins_moments(capsys, tmp_path):
    old = ran(tmp_path / "old", order=knows(0.9, 0.0))
    worse, segments = ran(tmp_path / "worse", order=knows(0.6, 0.0)), ran(tmp_path / "segments", order=knows(0.9, 0.8))
    same = gate(capsys, tmp_path, ran(tmp_path / "same", order=knows(0.9, 0.0)), "video-regression", old)
    assert (same.status, set(same.calls)) == (0, {"pass"})
    lost = gate(capsys, tmp_path, worse, "video-regression", old)
    assert (lost.status, lost.of(metric="fip")["verdict"]) == (1, "fail")
    ended = gate(capsys, tmp_path, segments, "video-regression", old)
    assert (ended.of(metric="fip")["verdict"], ended.of(metric="gap4")["verdict"]) == ("pass", "fail")
