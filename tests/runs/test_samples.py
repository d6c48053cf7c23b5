"""The table of a sample log: each column against rows made by hand, and every row of stored runs against the log's own JSON."""

import json

import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs import rows as columns
from lmms_patch.runs.rows import COLUMNS
from lmms_patch.runs.run import find
from lmms_patch.runs.samples import table
from tests.making.files import DATE, described, write_files
from tests.making.runs import write_magic
from tests.sizes import size
from tests.stored import unpack

ASKED = "Which?\nA. a cat\nB. a dog"


def view(score, n=None, cell=None, **more):
    """One view: the full image, or a cell."""
    place = (
        {} if cell is None else {"kind": "cell", "n": n, "cell": cell, "row": (cell - 1) // n, "col": (cell - 1) % n}
    )
    return {"kind": "full", **place, "scores": {"acc": score}, "items": {"acc": score}, **more}


def cells(*scores, n=2):
    return [view(score, n, i) for i, score in enumerate(scores, 1)]


def doc(doc_id, views, answers, *, said=None, **more):
    """One line of a sample log; ``said`` are other keys of the line."""
    patch = {
        "schema": 1,
        "task": "toy_rci2",
        "base": "toy",
        "kind": "rci",
        "grids": [2],
        "doc_id": doc_id,
        "image_sizes": [[64, 48]],
    }
    patch |= {"views": views, "best": {}, "excluded": {}, **more}
    return {"doc_id": doc_id, "target": "T", "input": ASKED, "filtered_resps": answers, **(said or {}), "patch": patch}


def result_of(folder, lines, kind="rci", grids=(2,), higher=None, filters=("none",), **values):
    """The task of a run that has these lines."""
    spec = WrapSpec("toy", KINDS[kind], grids, Options())
    docs = len(lines) // len(filters)
    found = {"records": docs, "higher_is_better": higher or {"acc": True}}
    named = {f"patch,{name}": found for name in filters}
    write_files(folder, {spec.name: ({**named, **values}, described(spec), lines)})
    return find([folder])[0].results


def rows(result, *columns):
    return list(zip(*(table(result).column(name).to_pylist() for name in columns), strict=True))


def test_every_column_of_a_doc_by_hand(tmp_path):
    """A doc of grid 2 whose third cell is the best, asked again on the image of doc 9.

    A call failed, and one scorer.
    """
    own = [
        view(1.0),
        view(0.0, 2, 1),
        view(0.4, 2, 2),
        view(0.9, 2, 3),
        {**view(None, 2, 4), "scores": {}, "items": {}, "error": "it raised"},
    ]
    lost = [
        {**view(0.0), "swapped": True, "said": "B"},
        {**view(0.0, 2, 1), "scores": {}, "items": {}, "failed": "timeout", "said": "", "swapped": True},
    ]
    more = {
        "best": {"2": 3},
        "images": "0123456789abcdef",
        "fields": {"category": "pets", "cluster": 7, "group": "img/1"},
        "answer": {"format": "mc", "label": "mc2", "options": 2, "gold": "A"},
        "stratum": "mc | 2",
        "baselines": [
            {"answer": "A", "roles": ["gold", "option"], "scores": {"acc": 0.8}},
            {"answer": "B", "roles": ["option"], "scores": {"acc": 0.0}},
        ],
        "wrong_image": {"from": 9, "image_sizes": [[8, 8]], "views": lost},
    }
    [result] = result_of(tmp_path, [doc(4, own, ["A", "B", "", "A", "what", "B", "x"], **more)])
    found = table(result)
    assert found.column_names == list(COLUMNS)
    assert [found.schema.field(name).type for name in COLUMNS] == list(COLUMNS.values())
    expected = {
        "view": [0, 1, 2, 3, 4, 5, 6],
        "kind": ["full", "cell", "cell", "cell", "cell", "full", "cell"],
        "swapped": [False] * 5 + [True] * 2,
        "n": [None, 2, 2, 2, 2, None, 2],
        "cell": [None, 1, 2, 3, 4, None, 1],
        "row": [None, 0, 0, 1, 1, None, 0],
        "col": [None, 0, 1, 0, 1, None, 0],
        "region": [None] * 7,
        "relevant": [None] * 7,
        "turn": [None] * 7,
        "gold_at": [None] * 7,
        "asked": [True] * 7,
        "score": [1.0, 0.0, 0.4, 0.9, None, 0.0, None],
        "right": [True, False, True, True, None, False, None],  # at least 0.4, half of what the gold scores
        "chosen": [False, False, False, True, False, False, False],
        "answer": ["A", "B", "", "A", "what", "B", None],
        "failed": [None] * 6 + ["timeout"],
        "error": [None] * 4 + ["it raised", None, None],
        "unfinished": [False] * 7,
        "names": [None] * 7,
    }
    of_doc = {
        "task": "toy_rci2", "filter": "none", "doc_id": 4, "question": ASKED, "gold": "A", "options": ["a cat", "a dog"], "category": "pets", "cluster": "7",
        "group": "img/1", "stratum": "mc | 2", "excluded": None, "width": 64, "height": 48, "images": "0123456789abcdef", "wrong_from": 9, "need": "one cell",
    }  # fmt: skip
    assert found.to_pydict() == expected | {name: [value] * 7 for name, value in of_doc.items()}


def test_views_that_were_left_out_stand_in_their_places(tmp_path):
    """Doc 0: the image, and cell 3, which is enough. Doc 1: the image alone. Doc 2: nothing.

    Doc 3: nothing but the wrong image.
    """
    lost = {"from": 1, "image_sizes": [[8, 8]], "views": [{**view(0.0), "swapped": True, "said": "w"}]}
    nothing = {"kind": "full", "scores": {}, "items": {}}
    lines = [
        doc(
            0,
            [view(1.0), view(1.0, 2, 3)],
            ["A", "B"],
            best={"2": 1},
            asked={"metric": "acc", "block": 1, "steps": 2, "unasked": 3},
        ),
        doc(1, [view(0.0)], "C", asked={"metric": "acc", "block": 1, "steps": 1, "unasked": 4}),
        doc(2, [nothing], "never said", asked={"metric": "acc", "block": 1, "steps": 0, "unasked": 5}),
        doc(3, [nothing], "D", asked={"metric": "acc", "block": 1, "steps": 0, "unasked": 5}, wrong_image=lost),
    ]
    [result] = result_of(tmp_path, lines)
    of_cells = [(1, 1, 0, 0), (2, 2, 0, 1), (3, 3, 1, 0), (4, 4, 1, 1)]
    unasked = [(0, None, None, None, False, None, None, False)] + [
        (*place, False, None, None, False) for place in of_cells
    ]
    expected = [
        (0, None, None, None, True, 1.0, "A", False), *((*place, False, None, None, False) for place in of_cells[:2]),
        (3, 3, 1, 0, True, 1.0, "B", True), (4, 4, 1, 1, False, None, None, False),
        (0, None, None, None, True, 0.0, "C", False), *unasked[1:],
        *unasked,
        *unasked, (5, None, None, None, True, 0.0, "D", False),
    ]  # fmt: skip
    assert rows(result, "view", "cell", "row", "col", "asked", "score", "answer", "chosen") == expected
    assert [place for place, swapped in enumerate(table(result).column("swapped").to_pylist()) if swapped] == [20]


def test_boxes_of_regions_and_greyed_cells(tmp_path):
    boxes = [{**view(1.0), "kind": "region", "region": i, "relevant": i == 1, "boxes": [[0, 0, 9, 9]]} for i in (1, 2)]
    regions = result_of(
        tmp_path / "r",
        [doc(0, [view(1.0), *boxes], ["A"] * 3, kind="regions", grids=[], best={"relevant": 1})],
        "regions",
        (),
    )
    assert rows(regions[0], "kind", "region", "relevant", "chosen") == [
        ("full", None, None, False),
        ("region", 1, True, True),
        ("region", 2, False, False),
    ]
    greyed = [view(1.0), *({**one, "kind": "occlude"} for one in cells(1, 0, 1, 1))]
    occlude = result_of(tmp_path / "o", [doc(0, greyed, ["A"] * 5, kind="occlude", best={"2": 2})], "occlude")
    assert rows(occlude[0], "kind", "cell", "chosen")[2] == ("occlude", 2, True)


def test_each_filter_has_its_own_rows(tmp_path):
    lines = [doc(i, [view(float(place)), *cells(0, 0, 0, 0)], [f"{place}"] * 5) for i in range(2) for place in range(2)]
    strict, loose = result_of(tmp_path, lines, filters=("strict", "loose"))
    assert set(rows(strict, "filter", "answer")) == {("strict", "0")}
    assert set(rows(loose, "filter", "answer")) == {("loose", "1")}
    assert rows(loose, "doc_id", "score")[::5] == [(0, 1.0), (1, 1.0)]


def test_other_metrics_have_columns_and_what_should_be_low_is_never_right(tmp_path):
    views = [{"kind": "blind", "scores": {"wer": 0.9, "acc": 0.25}, "items": {}}]
    spec = WrapSpec("toy", KINDS["blind"], (), Options())
    found = {"records": 1, "higher_is_better": {"acc": True, "wer": False}}
    config = {"lmms_patch": {**described(spec)["lmms_patch"], "metric": "wer"}}
    path = write_files(
        tmp_path,
        {"toy_blind": ({"patch": found}, config, [doc(0, views, "A", kind="blind", grids=[], image_sizes=[])])},
    )
    [result] = find([path])[0].results
    names = table(result).column_names
    assert names[names.index("score") : names.index("score") + 3] == ["score", "score.acc", "right"]
    assert rows(result, "score", "score.acc", "right", "answer", "width") == [(0.9, 0.25, None, "A", None)]


@pytest.mark.parametrize(
    ("best", "excluded", "told"),
    [
        ({}, {"2": "too small"}, "too small"),
        ({}, {"2": "too small", "3": "too small"}, "too small"),
        ({"2": 1}, {"3": "too small"}, "3: too small"),
        ({}, {"2": "a call failed", "3": "too small"}, "2: a call failed; 3: too small"),
    ],
)
def test_why_a_doc_is_left_out(tmp_path, best, excluded, told):
    [result] = result_of(
        tmp_path,
        [doc(0, [view(1.0), *cells(1, 0, 0, 0), *cells(*[0] * 9, n=3)], ["A"] * 14, best=best, excluded=excluded)],
        grids=(2, 3),
    )
    assert set(rows(result, "excluded")) == {(told,)}


def test_halves_of_characters_and_values_that_are_no_text(tmp_path):
    fields = {"category": 3, "cluster": ["a", 1]}
    said = {"input": None, "target": 5}
    [result] = result_of(
        tmp_path,
        [doc(0, [view(1.0), *cells(0, 0, 0, 0)], ["\ud83d half", 7, None, ["x"], "=1+1"], said=said, fields=fields)],
    )
    assert [answer for (answer,) in rows(result, "answer")] == ["\ufffd half", "7", "None", "['x']", "=1+1"]
    assert rows(result, "question", "gold", "category", "cluster", "options")[0] == (None, "5", "3", "['a', 1]", None)


@pytest.mark.parametrize("choices", [["one", "two"], None])
def test_options_are_those_of_the_field_or_those_that_were_scored(tmp_path, choices):
    baselines = [{"answer": one, "roles": ["option"], "scores": {"acc": 0.0}} for one in ("yes", "no")]
    more = {
        "fields": {"choices": choices},
        "baselines": baselines,
        "answer": {"format": "yesno", "label": "", "options": 2, "gold": "yes"},
    }
    [result] = result_of(tmp_path, [doc(0, [view(1.0), *cells(0, 0, 0, 0)], ["A"] * 5, **more)])
    assert rows(result, "options")[0] == (choices or ["no", "yes"],)


def test_columns_are_chosen_by_name(tmp_path):
    [result] = result_of(tmp_path, [doc(0, [view(1.0), *cells(0, 0, 0, 0)], ["A"] * 5)])
    assert table(result, ["score", "doc_id"]).column_names == ["score", "doc_id"]
    with pytest.raises(OptionError, match=r"^toy_rci2: no column 'scores'; did you mean score\?$"):
        table(result, ["scores"])


def test_what_has_no_table_says_so(tmp_path):
    path = write_magic(tmp_path / "magic", {"all": []}, tasks={"all": "toy_magic"})
    with pytest.raises(RecordError, match="toy_magic is a MAGIC task: its docs have no views"):
        table(find([path])[0].results[0])
    [result] = result_of(tmp_path / "run", [doc(0, [view(1.0), *cells(0, 0, 0, 0)], ["A"] * 5)])
    (tmp_path / "run" / f"{DATE}_samples_toy_rci2.jsonl").unlink()
    with pytest.raises(RecordError, match="no sample log of toy_rci2 beside it"):
        table(result)


@pytest.mark.parametrize("batch", size([50], [50, 4096]))
def test_every_row_of_stored_runs_is_that_of_the_log(tmp_path, monkeypatch, batch):
    """Read again as plain JSON, whatever the number of docs that are read at once.

    Some tasks have 60 docs, so batches of 50 give a whole one and a part of one.
    """
    monkeypatch.setattr(columns, "BATCH", batch)
    seen = 0
    folder = unpack(tmp_path)
    for run in find([folder / name for name in ("boxes", "grids", *size((), ("demo",)), "tst")]):
        for result in run.results:
            expected = []
            for line in map(json.loads, result.log.read_text().splitlines()):
                patch, given = line["patch"], line.get("filtered_resps")
                wrong = patch.get("wrong_image", {"views": []})
                views = [*patch["views"], *wrong["views"]]
                given = given if isinstance(given, list) else [given] * len(views)
                for place, (one, answer) in enumerate(zip(views, given, strict=True)):
                    score = one["scores"].get(result.metric)
                    gold = max(
                        (b["scores"][result.metric] for b in patch.get("baselines", ()) if "gold" in b["roles"]),
                        default=1.0,
                    )
                    expected.append(
                        (
                            patch["doc_id"], place, one["kind"], one.get("swapped", False), one.get("n"), one.get("cell"), one.get("row"), one.get("col"),
                            one.get("region"), one.get("relevant"), score, None if score is None else score >= gold / 2, place in patch["best"].values(), answer,
                            wrong.get("from"), patch.get("fields", {}).get("category"), patch["image_sizes"][0][0] if patch["image_sizes"] else None,
                        )
                    )  # fmt: skip
            seen += len(expected)
            names = (
                "doc_id", "view", "kind", "swapped", "n", "cell", "row", "col", "region", "relevant", "score",
                "right", "chosen", "answer",
            )  # fmt: skip
            assert rows(result, *names, "wrong_from", "category", "width") == expected
    assert seen > size(1_500, 4_000)
