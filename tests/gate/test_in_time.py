"""The shipped rules for videos, on runs whose truth is planted: the whole clip is needed, one segment is enough, nobody watches."""

from tests.gate.running import gate, refused
from tests.making import lean
from tests.making.runs import again_run, write_run


def test_a_benchmark_is_released_where_its_questions_need_the_whole_clip(capsys, tmp_path):
    needs = {"order": ("whole", "whole", "whole", "cell"), "still": ("cell",), "radio": ("text",)}
    made = {f"{base}_trci4": again_run(of, 320, 4, "trci", base) for base, of in needs.items()}
    write_run(tmp_path / "out" / "time", made)
    refused(
        gate(capsys, tmp_path, tmp_path / "out", "video-release"),
        "kind tst matches nothing; there is trci",
    )
    lean.write(tmp_path / "out" / "tst", [lean.stressed(n=2000, accuracy=0.25)])
    ended = gate(capsys, tmp_path, tmp_path / "out", "video-release")
    assert ended.status == 1

    def verdicts(rule):
        return {one["task"]: one["verdict"] for one in ended.json["verdicts"] if one["rule"] == rule}

    clips = verdicts("most of what is solved needs the whole clip")
    assert clips == {"order_trci4": "pass", "still_trci4": "fail", "radio_trci4": "fail"}
    watched = verdicts("needs the clip")
    assert watched == {"order_trci4": "pass", "still_trci4": "pass", "radio_trci4": "fail"}
    assert {one["verdict"] for one in ended.json["verdicts"] if one["task"] == "order_trci4"} == {"pass"}


def test_a_model_gets_worse_in_its_score_or_where_it_no_longer_joins_moments(capsys, tmp_path):
    needs = {
        "old": ("whole",),
        "same": ("whole",),
        "worse": ("whole", "unsolved"),
        "segments": ("cell", "whole", "cell"),
    }
    for name, of in needs.items():
        write_run(tmp_path / name, {"order_trci4": again_run(of, 320, 4, "trci", "order")})
    ended = {
        name: gate(capsys, tmp_path, tmp_path / name, "video-regression", tmp_path / "old")
        for name in needs
        if name != "old"
    }
    assert (ended["same"].status, set(ended["same"].calls)) == (0, {"pass"})
    assert (ended["worse"].status, ended["worse"].of(metric="fip")["verdict"]) == (1, "fail")
    segments = ended["segments"]
    assert (segments.of(metric="fip")["verdict"], segments.of(metric="whole4")["verdict"]) == ("pass", "fail")
