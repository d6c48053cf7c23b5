"""Runs of VLMEvalKit: the numbers of files in its layout are those of the native run that they were made of, and those by hand."""

import json
import math
import time

import openpyxl
import pytest

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.compare import audit
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.runs import run as runs
from lmms_patch.runs import vlmevalkit
from tests.making import kit
from tests.making.runs import mc_run, write_run

ALIKE = ("index", "gap", "mpp", "fip", "excluded", "spatial", "shares")
"""Of a grid: what rests on the docs' own answers, and neither on donors nor on wrong images."""


def native(tmp_path, **more):
    spec, records, made = mc_run(n=60, per_cluster=2, **more)
    for record in records:
        record.pop("lent", None)
    return runs.read(write_run(tmp_path / "native", {spec.name: (spec, records, made)})).results[0], records


def imported(paths, tmp_path, **more):
    done = api.import_.vlmevalkit(paths, output=tmp_path / "imported", **more)
    return [result for path in dict.fromkeys(one.path for one in done) for result in runs.read(path).results], done


def same(one, other):
    """Equal bit for bit, whatever the order of keys."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize(
    ("ending", "name", "start", "crop"),
    [
        (".xlsx", "{dataset}_patch_{n}_{row}_{col}", 1, None),
        (".tsv", "{dataset}_patch{n}_{cell}", 0, None),
        (".json", "{dataset}_patch_{cell}", 1, None),
        (".csv", "Cut {cell} of {dataset}", 0, "Cut {cell} of {dataset}"),
    ],
)
def test_numbers_are_those_of_the_native_run_bit_for_bit(tmp_path, ending, name, start, crop):
    own, records = native(tmp_path, grid=2)
    kit.export(tmp_path / "kit", records, name=name, start=start, ending=ending)
    (found,), (done,) = imported(tmp_path / "kit", tmp_path, cluster="cluster", category="category", crop=crop)
    ours, theirs = (one.details["analysis"] for one in (own, found))
    assert (found.task, found.run.model, done.grids, found.docs) == ("Toy_rci2", "m", (2,), 60)
    assert same(theirs["fip"], ours["fip"])
    assert same(
        {key: theirs["grids"]["2"].get(key) for key in ALIKE}, {key: ours["grids"]["2"].get(key) for key in ALIKE}
    )
    assert ours["grids"]["2"]["index"]["value"] is not None
    assert same(theirs["chance"]["floors"], ours["chance"]["floors"]), (
        "uninformed answers are letters, so what they score is known"
    )
    assert same(theirs["gate"], ours["gate"])
    assert theirs["clusters"] == 30
    # by hand
    full = sum(record["views"][0]["scores"]["acc"] for record in records) / 60
    best = sum(max(view["scores"]["acc"] for view in record["views"][1:]) for record in records) / 60
    assert theirs["fip"]["value"] == pytest.approx(full)
    assert theirs["grids"]["2"]["index"]["value"] == pytest.approx(1 - best / full)
    assert audit.check(found).unchecked == ()


def test_cells_are_where_their_names_say(tmp_path):
    """Only the cell in row 2, column 1 of 3x3 knows the answer; so does no other, whatever the order of the files."""
    golds = [kit.LETTERS[i % 4] for i in range(40)]
    rows = [kit.question(i, gold, gold) for i, gold in enumerate(golds)]
    kit.write(tmp_path / "m" / "m_Toy_openai_result.xlsx", rows)
    for row in range(3):
        for col in range(3):
            own = [kit.question(i, gold, gold if (row, col) == (1, 0) else "none") for i, gold in enumerate(golds)]
            kit.write(tmp_path / "m" / f"m_Toy_patch_3_{row}_{col}_openai_result.xlsx", own)
    (found,), _ = imported(tmp_path / "m", tmp_path)
    for record in found.records():
        right = [
            (view.n, view.row, view.col, view.cell) for view in record.views if view.cell and view.scores["acc"] == 1
        ]
        assert right == [(3, 1, 0, 4)]
    assert found.details["analysis"]["grids"]["3"]["index"]["value"] == 0.0


def test_two_grids_are_one_run(tmp_path):
    _, records = native(tmp_path, grid=2)
    _, finer = native(tmp_path, grid=3)
    kit.export(tmp_path / "kit", records)
    for path in kit.export(tmp_path / "other", finer, n=3).rglob("*patch_3*"):
        path.rename(tmp_path / "kit" / "m" / path.name)
    (found,), _ = imported(tmp_path / "kit", tmp_path)
    assert (found.task, sorted(found.details["analysis"]["grids"])) == ("Toy_rci", ["2", "3"])


def test_full_images_alone_are_a_run_without_an_index(tmp_path, capsys):
    rows = [kit.question(i, said="A" if i % 4 else "B") for i in range(40)]
    kit.write(tmp_path / "m" / "m_Toy_openai_result.xlsx", rows)
    (found,), (done,) = imported(tmp_path / "m", tmp_path)
    assert (found.task, done.grids, found.measures["score"].value) == ("Toy", (), 0.75)
    assert found.measures["score"].low < 0.75 < found.measures["score"].high
    assert audit.check(found).unchecked == ()
    out = str(done.path.parent)
    assert main(["show", out]) == 0
    assert "No result for Toy (only full images were asked)" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", out, out]) == 0
    assert main(["leaderboard", out, "--output", str(tmp_path / "board")]) == 0
    assert main(["report", out, "--output", str(tmp_path / "page")]) == 0


def test_a_run_goes_through_every_reader(tmp_path, capsys):
    _, records = native(tmp_path, grid=2)
    kit.export(tmp_path / "kit", records)
    assert main(["import", "vlmevalkit", str(tmp_path / "kit"), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "m: Toy_rci2, 60 docs, 2x2" in printed
    assert "nothing was asked on wrong images, so the gate cannot say whether the model looks" in printed
    out = str(tmp_path / "out")
    for words in (
        ["show", out],
        ["analyze", out],
        ["compare", out, out],
        ["leaderboard", out, "--output", str(tmp_path / "b")],
    ):
        assert main(words) == 0, words
    rules = tmp_path / "rules.yaml"
    rules.write_text("schema: 1\nrules:\n  - {name: looks, kind: [rci], require: looks}\n")
    assert main(["gate", out, "-c", str(rules)]) in (1, 3)


# --- what files get wrong -------------------------------------------------------------------------


def table(tmp_path, rows, name="m_Toy_openai_result.xlsx", **more):
    return kit.write(tmp_path / "m" / name, rows, **more)


def test_cells_of_a_table_are_read_as_what_they_mean(tmp_path):
    """7, 7.0 and "7" are one index; True, 1 and 1.0 are one score; an option may be a number."""
    rows = [
        kit.question(7.0, A=3, B=4.5, hit=True),
        kit.question(8, hit=1.0),
        kit.question(9, hit="0", said="B"),
        kit.question(10, hit=False, answer="a"),
    ]
    table(tmp_path, rows)
    (found,), _ = imported(tmp_path, tmp_path)
    assert {record.doc_id: record.views[0].scores["acc"] for record in found.records()} == {
        7: 1.0,
        8: 1.0,
        9: 0.0,
        10: 0.0,
    }
    assert {record.answer.label for record in found.records() if record.doc_id < 10} == {"mc4"}


def test_a_number_in_place_of_a_letter_gives_no_made_up_chance(tmp_path):
    """Nobody says whether option 1 is A or B: chance is not known, and the notes say so."""
    table(tmp_path, [kit.question(i, gold=1 + i % 3, said="1", hit=int(i % 3 == 0)) for i in range(30)])
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert found.details["chance"] is None
    assert any("type --chance if it is documented" in note for note in done.notes)
    (found,), (done,) = imported(tmp_path, tmp_path, chance=0.25)
    assert found.details["chance"] == 0.25


def test_failed_calls_and_empty_cells(tmp_path):
    """A failed call is wrong in the metric's own number, as VLMEvalKit counts it, and left out of FIP.

    An empty answer is an answer.
    """
    failed = "Failed to obtain answer via API. "
    rows = [
        kit.question(0),
        kit.question(1, said=failed, hit=1),
        kit.question(2, said=None, hit=0),
        kit.question(3),
        kit.question(4),
    ]
    table(tmp_path, rows)
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert [record.views[0].failed is not None for record in found.records()] == [False, True, False, False, False]
    assert found.metrics["acc"] == pytest.approx(3 / 5)
    assert found.measures["fip"].value == pytest.approx(3 / 4)
    assert audit.check(found).unchecked == ()
    assert any("1 docs with a failed call" in note for note in done.notes)
    assert any("1 failed calls have a score above 0" in note for note in done.notes), "VLMEvalKit drew a letter for it"


def test_an_export_of_failed_calls_says_what_they_are(tmp_path):
    """200 docs, 150 answered, 104 of them right: 0.693 of the answered, 0.52 as VLMEvalKit counts.

    And who asked is VLMEvalKit.
    """
    rows = [
        kit.question(i, said="A" if i < 104 else "B" if i < 150 else "Failed to obtain answer via API.")
        for i in range(200)
    ]
    table(tmp_path, rows)
    (found,), _ = imported(tmp_path, tmp_path)
    assert found.metrics["acc"] == 0.52
    api.publish(found.run.path, "every-eval-ever", output=tmp_path / "x.json")
    made = json.loads((tmp_path / "x.json").read_text())
    one = next(one for one in made["evaluation_results"] if one["metric_config"]["metric_id"] == "acc")
    assert one["score_details"]["score"] == pytest.approx(104 / 150)
    assert one["score_details"]["details"]["note"] == (
        "the value leaves out 50 of 200 docs, whose call failed; with these as wrong answers it is 0.52"
    )
    assert (made["eval_library"]["name"], one["metric_config"]["evaluation_description"]) == (
        "VLMEvalKit",
        "acc, VLMEvalKit's own metric",
    )


def test_an_answer_without_a_score_leaves_no_index(tmp_path):
    _, records = native(tmp_path, grid=2)
    kit.export(tmp_path / "kit", records, ending=".tsv")
    path = tmp_path / "kit" / "m" / "m_Toy_patch_2_0_1_openai_result.tsv"
    lines = path.read_text().splitlines()
    head, cells = lines[0].split("\t"), lines[5].split("\t")
    cells[head.index('"hit"')] = '"nan"'
    path.write_text("\n".join([*lines[:5], "\t".join(cells), *lines[6:]]))
    (found,), (done,) = imported(tmp_path / "kit", tmp_path)
    assert found.details["analysis"]["grids"]["2"]["index"]["value"] is None
    assert any("1 answers without a score" in note for note in done.notes)


def test_a_full_image_without_a_score_leaves_no_score(tmp_path, capsys):
    """A mean over the docs that were judged so far is not the benchmark's number, and would be read as it."""
    table(tmp_path, [kit.question(i, hit=None if i < 3 else 1) for i in range(30)])
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert (found.metrics["acc"], found.measures["score"].value, audit.check(found).unchecked) == (None, None, ())
    assert "3 answers without a score: neither score nor index, until VLMEvalKit has judged all of them" in done.notes
    assert main(["show", str(done.path.parent)]) == 0
    assert "nothing was scored" in capsys.readouterr().out


def test_docs_that_a_cell_lacks_are_left_out_of_the_grid(tmp_path):
    _, records = native(tmp_path, grid=2)
    kit.export(tmp_path / "kit", records)
    lacking = [
        kit.question(r["doc_id"], r["answer"]["gold"], r["answer"]["gold"], question="Which?") for r in records[6:]
    ]
    kit.write(tmp_path / "kit" / "m" / "m_Toy_patch_2_1_1_openai_result.xlsx", lacking)
    (found,), (done,) = imported(tmp_path / "kit", tmp_path)
    grid = found.details["analysis"]["grids"]["2"]
    assert grid["excluded"] == 6
    full = [r["views"][0]["scores"]["acc"] for r in records]
    assert grid["fip"] == pytest.approx(sum(full[6:]) / 54)
    assert found.details["analysis"]["fip"]["value"] == pytest.approx(sum(full) / 60)
    assert grid["mpp"]["value"] == 1.0
    assert any("2x2: 6 of 60 docs are not in all cells' files" in note for note in done.notes)
    assert audit.check(found).unchecked == ()


def test_scores_on_another_scale(tmp_path):
    rows = [kit.question(i, hit=None, score=25 * (i % 5)) for i in range(30)]
    for row in rows:
        del row["hit"]
    table(tmp_path, rows)
    with pytest.raises(OptionError, match=r"index 1 has the score 25, outside 0 to 1; type --scale with full marks"):
        imported(tmp_path, tmp_path)
    (found,), _ = imported(tmp_path, tmp_path, scale=100)
    assert found.described["metric"] == "score"
    assert found.measures["score"].value == pytest.approx(50)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([kit.question(0), kit.question(1), kit.question("1")], r"index 1 stands 2 times \(1 such indices\)"),
        ([{**kit.question(0), "index": None}], "row 1 has no index"),
        (
            [{k: v for k, v in kit.question(0).items() if k != "hit"}],
            "no column of scores .looked for: hit, score, eval_score, .*; found: index, question, A, B",
        ),
        (
            [{k: v for k, v in kit.question(0).items() if k != "prediction"}],
            "no column 'prediction' .looked for: index, prediction; found: index",
        ),
        ([kit.question(0, hit="right")], "index 0 has the hit 'right', which is no number; name a column with --score"),
        ([kit.question(0, hit=2)], "outside 0 to 1; type --scale"),
        ([kit.question(0, hit=-1)], "outside 0 to 1"),
    ],
)
def test_a_faulty_table_is_one_line(tmp_path, rows, says):
    table(tmp_path, rows)
    with pytest.raises(PatchError, match=says) as refused:
        imported(tmp_path, tmp_path)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("ending", [".xlsx", ".tsv", ".csv", ".json"])
@pytest.mark.parametrize("other", ["Hit", "hit ", "HIT"])
def test_columns_that_differ_in_capitals_alone_are_refused(tmp_path, ending, other):
    table(tmp_path, [{**kit.question(i), other: 0} for i in range(3)], f"m_Toy_openai_result{ending}")
    with pytest.raises(
        RecordError,
        match=rf"several columns have the name 'hit' \('hit', '{other.strip()}'\); rename or remove all but one",
    ):
        imported(tmp_path, tmp_path)


def test_columns_of_one_name_are_refused(tmp_path):
    """Python's readers keep the last of them. Columns without a name are nobody's."""
    path = table(
        tmp_path, [{**kit.question(i), "again": 0, "none": 1, "nor": 2} for i in range(3)], "m_Toy_openai_result.tsv"
    )
    path.write_text(path.read_text().replace('"none"', '""').replace('"nor"', '""'))
    imported(tmp_path, tmp_path)
    path.write_text(path.read_text().replace('"again"', '"hit"'))
    with pytest.raises(RecordError, match="several columns have the name 'hit'"):
        imported(tmp_path, tmp_path)
    path.unlink()
    path = table(tmp_path, [{**kit.question(i), "again": 0} for i in range(3)])
    book = openpyxl.load_workbook(path)
    for cell in book.active[1]:
        cell.value = "answer" if cell.value == "again" else cell.value
    book.save(path)
    with pytest.raises(RecordError, match=r"several columns have the name 'answer' \('answer', 'answer'\)"):
        imported(tmp_path, tmp_path)


def test_one_cell_at_the_end_of_a_sheet_costs_nothing(tmp_path):
    """Of 5 kB; read row by row as wide as the sheet says it is, it would be 17 billion cells."""
    path = table(tmp_path, [kit.question(i, said="=1/2", hit=i % 2) for i in range(4)])
    book = openpyxl.load_workbook(path)
    book.active["XFD1048576"] = "x"
    book.save(path)
    assert path.stat().st_size < 10_000
    began = time.process_time()
    rows = vlmevalkit.rows_of(path)
    assert time.process_time() - began < 20
    assert [row["prediction"] for row in rows] == ["=1/2"] * 4


def test_a_sheet_that_unpacks_to_more_than_a_table_holds_is_refused(tmp_path, monkeypatch):
    path = table(tmp_path, [kit.question(i) for i in range(400)])
    monkeypatch.setattr(vlmevalkit, "_MAX_BYTES", path.stat().st_size + 1)
    with pytest.raises(RecordError, match="when it is unpacked, so no table of results"):
        imported(tmp_path, tmp_path)


def test_formulas_without_values(tmp_path):
    """openpyxl stores what begins with = as a formula, without its value: an answer keeps its text, a score is refused."""
    table(tmp_path, [kit.question(i, said="=1/2", hit=i % 2) for i in range(4)])
    (found,), _ = imported(tmp_path, tmp_path)
    assert [json.loads(one)["filtered_resps"] for one in found.log.read_text().splitlines()] == [["=1/2"]] * 4
    assert found.measures["score"].value == 0.5
    table(tmp_path, [kit.question(i, hit="=1+0" if i else 1) for i in range(4)])
    with pytest.raises(
        RecordError, match=r"the hit '=1\+0' is a formula without its value; open the file in a spreadsheet program"
    ):
        imported(tmp_path, tmp_path / "again")
    table(tmp_path, [kit.question(i, hit=None) for i in range(4)])
    with pytest.raises(RecordError, match="no row has a hit; let VLMEvalKit evaluate first"):
        imported(tmp_path, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_links_to_the_newest_evaluation(tmp_path):
    """The layout of VLMEvalKit: files in a folder for each evaluation, and links to the newest of them above."""
    rows = [kit.question(i, said="A" if i else "B") for i in range(4)]
    path = kit.write(tmp_path / "out" / "m" / "T20251101_Gabc" / "m_Toy_openai_result.xlsx", rows)
    (tmp_path / "out" / "m" / path.name).symlink_to(path)
    (found,), _ = imported(tmp_path / "out", tmp_path)
    assert (found.docs, found.measures["score"].value) == (4, 0.75)
    older = kit.write(tmp_path / "out" / "m" / "T20251001_Gabc" / path.name, rows)
    with pytest.raises(
        RecordError,
        match=r"several files with scores .*T20251001.*; give one of these files, or the folder of one evaluation",
    ):
        imported(tmp_path / "out", tmp_path)
    assert len(imported(older.parent, tmp_path)[0]) == 1


def test_sheets(tmp_path):
    """A sheet of notes beside the table does no harm; two tables do."""
    rows = [kit.question(i) for i in range(3)]
    table(tmp_path, rows, sheets=[("notes", [{"about": "me"}])])
    (found,), _ = imported(tmp_path, tmp_path)
    assert found.docs == 3
    table(tmp_path, rows, sheets=[("again", rows)])
    with pytest.raises(RecordError, match=r"2 sheets with a column 'index' \(Sheet, again\); one is needed"):
        imported(tmp_path, tmp_path)
    kit.write(tmp_path / "m" / "m_Toy_openai_result.xlsx", [{"about": "me"}])
    with pytest.raises(RecordError, match="no sheet with a column 'index'"):
        imported(tmp_path, tmp_path)


def test_a_pickle_is_read_only_where_it_is_trusted(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").write_text, ("x",)

    import pickle

    path = tmp_path / "m" / "m_Toy_openai_result.pkl"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps([Trap()]))
    with pytest.raises(
        RecordError,
        match=r"a pickle can run any code when it is read; save it as .xlsx or .tsv, or type --trust-pickle",
    ):
        imported(tmp_path, tmp_path)
    assert not (tmp_path / "sprung").exists()
    kit.write(path, [kit.question(i) for i in range(3)])
    (found,), _ = imported(tmp_path, tmp_path, trust_pickle=True)
    assert found.docs == 3


def test_the_judge_s_own_pickle_beside_the_table_is_left_alone(tmp_path):
    rows = [kit.question(i) for i in range(3)]
    table(tmp_path, rows)
    table(tmp_path, [{k: v for k, v in row.items() if k != "hit"} for row in rows], "m_Toy.xlsx")
    (tmp_path / "m" / "m_Toy_openai_result.pkl").write_bytes(b"not a pickle")
    (tmp_path / "m" / "m_Toy_acc.csv").write_text('"split","Overall"\n"none","1.0"\n')
    (found,), _ = imported(tmp_path, tmp_path)
    assert found.docs == 3


def test_two_judges_need_a_choice(tmp_path):
    rows = [kit.question(i) for i in range(4)]
    table(tmp_path, rows)
    table(tmp_path, [{**row, "hit": 0} for row in rows], "m_Toy_exact_matching_result.xlsx")
    with pytest.raises(
        RecordError, match=r"several files with scores .*; name one judge with --judge, such as exact_matching"
    ):
        imported(tmp_path, tmp_path)
    values = {
        judge: imported(tmp_path, tmp_path, judge=judge)[0][0].measures["score"].value
        for judge in ("openai", "exact_matching")
    }
    assert values == {"openai": 1.0, "exact_matching": 0.0}
    with pytest.raises(RecordError, match="no file of judge 'me'; there are: exact_matching, openai"):
        imported(tmp_path, tmp_path, judge="me")


def test_yes_and_no(tmp_path):
    """POPE in VLMEvalKit: Yes or No, ``extracted`` and ``score``.

    Three of five golds are Yes, so a constant answer gets 0.6.
    """
    golds = ["Yes", "Yes", "Yes", "No", "No"] * 20
    rows = [
        {
            "index": i,
            "question": f"Is there a {i}?",
            "answer": gold,
            "prediction": "Yes, there is",
            "extracted": "Yes",
            "score": gold == "Yes",
        }
        for i, gold in enumerate(golds)
    ]
    table(tmp_path, rows, "m_POPE_auxmatch.xlsx")
    (found,), _ = imported(tmp_path, tmp_path)
    assert (found.task, found.described["metric"], found.measures["score"].value) == ("POPE", "acc", 0.6)
    assert found.details["chance"] == pytest.approx(0.6, abs=0.02)


def test_circular_evaluation_has_no_chance_by_letters(tmp_path):
    """MMBench: a hit is a whole group of rotations, so a constant letter would get nothing, and not the share of that letter."""
    table(tmp_path, [kit.question(i, kit.LETTERS[i % 4], g_index=i) for i in range(40)])
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert found.details["chance"] is None
    assert {record.answer.format for record in found.records()} == {"open"}
    assert any("type --chance" in note for note in done.notes)


def test_rows_that_are_turned_questions_are_one_cluster_each(tmp_path):
    """MMBench as it is asked, without g_index: 25 questions in 4 turns.

    All turns of a question are alike, so the interval is that of 25 docs.
    """
    rows = []
    for i in range(25):
        for turn in range(4):
            options = {letter: f"thing {(place + turn) % 4}" for place, letter in enumerate(kit.LETTERS)}
            said = gold = kit.LETTERS[-turn % 4]
            rows.append(
                {
                    **kit.question(i + turn * 10**6, gold, said if i % 5 else "none"),
                    "question": f"Which? {i}",
                    **options,
                }
            )
    table(tmp_path, rows, "m_MMBench_openai_result.xlsx")
    table(tmp_path, [kit.question(i, said="A" if i % 5 else "none") for i in range(25)], "m_Few_openai_result.xlsx")
    (few, found), (_, done) = imported(tmp_path, tmp_path)
    assert (found.docs, found.details["analysis"]["clusters"], found.measures["score"].value) == (100, 25, 0.8)
    width, alone = (one.measures["score"].high - one.measures["score"].low for one in (found, few))
    assert width > 0.8 * alone, "of 100 docs it would be half as wide"
    assert audit.check(found).unchecked == ()
    assert any("the 100 rows are 25 questions with their options turned" in note for note in done.notes)
    assert found.metrics["acc_circular"] == 0.8
    rows = [{**kit.question(i + turn * 10**6), "question": f"Which? {i} {turn}"} for i in range(5) for turn in range(2)]
    table(tmp_path / "other", rows)
    (found,), (done,) = imported(tmp_path / "other", tmp_path / "other")
    assert found.details["analysis"]["clusters"] is None, "other questions, so other docs"


def as_mmmu(i, gold, said, version):
    """An open question as VLMEvalKit's MMMU_preproc leaves it in a judged table: later versions write A as its answer."""
    row = {**kit.question(i), "A": gold, "B": "Other Answers", "C": None, "D": None, "prediction": said}
    return {**row, "answer": gold if version == "earlier" else "A", "hit": int(gold in said)}


@pytest.mark.parametrize("version", ["earlier", "later"])
@pytest.mark.parametrize("ending", [".xlsx", ".tsv"])
def test_open_questions_of_mmmu_are_no_choice_of_two(tmp_path, version, ending):
    """28 choices of four and two open questions: a guess earns 28/4 of 30, and not (28/4 + 2/2) of 30."""
    rows = [kit.question(i, kit.LETTERS[i % 4], "A") for i in range(28)]
    rows += [as_mmmu(28, "42", "It is 42", version), as_mmmu(29, "a comb", "a rake", version)]
    table(tmp_path, rows, f"m_MMMU_DEV_VAL_openai_result{ending}")
    (found,), (done,) = imported(tmp_path, tmp_path)
    chance = found.details["analysis"]["chance"]
    assert chance["floors"]["uniform"]["value"] == pytest.approx(7 / 30)
    assert found.metrics["acc"] == pytest.approx(8 / 30)
    *_, first, second = found.records()
    assert [(one.answer.format, one.answer.options, one.answer.gold) for one in (first, second)] == [
        ("open", 0, "42"),
        ("open", 0, "a comb"),
    ]
    assert next(note for note in done.notes if "questions are open" in note).startswith("2 of 30 questions are open")
    assert not any("type --chance" in note for note in done.notes)
    assert audit.check(found).unchecked == ()


def test_a_gold_that_open_questions_share_is_a_constant_answer(tmp_path):
    """12 open questions, golds 2 (five times), 20 (once) and six others: "2" is right five times.

    "20" has "2" in it, so VLMEvalKit counts it as right six times: 6/12.
    """
    golds = ["2"] * 5 + ["20"] * 2 + ["a", "b", "c", "d", "e"]
    table(
        tmp_path, [as_mmmu(i, gold, "", "earlier") for i, gold in enumerate(golds)], "m_MMMU_DEV_VAL_openai_result.xlsx"
    )
    (found,), _ = imported(tmp_path, tmp_path)
    constant = found.details["analysis"]["chance"]["floors"]["constant"]["value"]
    assert constant == pytest.approx(max(sum(gold in text for gold in golds) for text in ("2", "20")) / 12) == 7 / 12


def test_an_open_question_whose_gold_is_a_letter(tmp_path):
    """VLMEvalKit leaves B as its gold, although B is "Other Answers" then; nobody saw that option."""
    rows = [kit.question(i, kit.LETTERS[i % 4]) for i in range(28)] + [
        as_mmmu(i, "B", "B", "earlier") for i in (28, 29)
    ]
    table(tmp_path, rows, "m_MMMU_DEV_VAL_openai_result.xlsx")
    (found,), _ = imported(tmp_path, tmp_path)
    assert [record.answer.format for record in found.records()] == ["mc"] * 28 + ["open"] * 2


def test_other_answers_that_were_asked_stay_an_option(tmp_path):
    """Where some gold is "Other Answers" itself, VLMEvalKit has not written that option."""
    rows = [as_mmmu(i, f"thing {i}", "A", "later") for i in range(20)]
    rows[7]["answer"] = "B"
    table(tmp_path, rows)
    (found,), _ = imported(tmp_path, tmp_path)
    assert {record.answer.label for record in found.records()} == {"mc2"}
    assert found.details["analysis"]["chance"]["floors"]["uniform"]["value"] == 0.5


def in_groups(right, number=lambda i, turn: 4 * i + turn):
    """20 questions in four turns each, with VLMEvalKit's ``g_index``; ``right``: how many turns of each are right."""
    return [
        {**kit.question(number(i, turn), "ABCD"[turn], "ABCD"[turn] if turn < count else "none"), "g_index": 100 + i}
        for i, count in enumerate(right)
        for turn in range(4)
    ]


@pytest.mark.parametrize("number", [lambda i, turn: 4 * i + turn, lambda i, turn: 100 + i + turn * 10**6])
def test_rows_of_a_g_index_are_one_cluster_and_have_a_circular_score(tmp_path, number):
    """Of 20 questions 8 are right in all turns, 6 in three and 6 in none: 50 of 80 rows, 8 of 20 questions."""
    right = [4] * 8 + [3] * 6 + [0] * 6
    table(tmp_path, in_groups(right, number=number), "m_MMBench_openai_result.xlsx")
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert (found.docs, found.details["analysis"]["clusters"]) == (80, 20)
    assert (found.metrics["acc"], found.metrics["acc_circular"]) == (50 / 80, 8 / 20)
    assert {record.answer.format for record in found.records()} == {"mc"}, "rows of one question are scored differently"
    assert found.details["chance"] == pytest.approx(0.25)
    assert any(
        "the 80 rows are 20 questions with their options turned; acc is the mean over rows, and acc_circular (0.400)"
        in note
        for note in done.notes
    )
    assert audit.check(found).unchecked == ()
    assert main(["show", str(done.path.parent)]) == 0


def test_a_circular_score_that_was_changed_is_refused(tmp_path):
    table(tmp_path, in_groups([4, 3, 0, 4, 2]), "m_MMBench_openai_result.xlsx")
    _, (done,) = imported(tmp_path, tmp_path)
    done.path.write_text(done.path.read_text().replace('"acc_circular,none": 0.4', '"acc_circular,none": 0.6'))
    (changed,) = runs.read(done.path).results
    with pytest.raises(RecordError, match=r"the sample log gives acc_circular 0\.4, but the run reported 0\.6"):
        audit.check(changed)


def test_a_failed_or_unscored_turn_of_a_question(tmp_path):
    """A failed call is a wrong turn; a turn without a score leaves no circular score."""
    rows = in_groups([4, 4, 3, 0])
    rows[0]["prediction"] = "Failed to obtain answer via API."
    table(tmp_path, rows, "m_MMBench_openai_result.xlsx")
    (found,), _ = imported(tmp_path, tmp_path)
    assert found.metrics["acc_circular"] == 0.25
    rows[5]["hit"] = None
    table(tmp_path, rows, "m_MMBench_openai_result.xlsx")
    (found,), (done,) = imported(tmp_path, tmp_path)
    assert found.metrics["acc_circular"] is None
    assert any("the circular score is not known" in note for note in done.notes)


def test_scores_that_all_turns_of_a_question_share_give_a_letter_no_chance(tmp_path):
    """A table that repeats each question's score on its rows: the score is the question's, and no letter earns it."""
    table(tmp_path, [{**row, "hit": int(row["g_index"] % 3 > 0)} for row in in_groups([4] * 12)])
    (found,), _ = imported(tmp_path, tmp_path)
    assert (found.metrics["acc"], found.metrics["acc_circular"], found.details["chance"]) == (8 / 12, 8 / 12, None)


def test_advice_about_failed_calls_is_of_vlmevalkit(tmp_path, capsys):
    rows = [kit.question(i, said="Failed to obtain answer via API." if i < 12 else "A") for i in range(60)]
    table(tmp_path, rows)
    _, (done,) = imported(tmp_path, tmp_path)
    assert main(["show", str(done.path.parent)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "run VLMEvalKit again with --reuse, which asks only the failed calls, and import its files anew" in said
    assert "--use_cache" not in said + done.path.read_text()


def test_options_keep_their_letters(tmp_path):
    """30 docs have the options A, C and D, 18 with gold D; ten have A and B.

    By hand: a random option earns (30/3 + 10/2)/40, D 18/40, B 10/40.
    """
    golds = [*"D" * 18, *"A" * 6, *"C" * 6, *"B" * 10]
    rows = [
        {**kit.question(i, gold, gold), **({"B": None} if i < 30 else {"C": None, "D": None})}
        for i, gold in enumerate(golds)
    ]
    table(tmp_path, rows)
    (found,), _ = imported(tmp_path, tmp_path)
    floors = found.details["analysis"]["chance"]["floors"]
    assert {name: floors[name]["value"] for name in ("uniform", "constant")} == pytest.approx(
        {"uniform": 15 / 40, "constant": 18 / 40}
    )
    assert found.details["analysis"]["chance"]["constants"] == {"mc": "D"}
    first = next(found.records())
    assert (first.answer.label, first.answer.gold) == ("mc3", "D")
    assert {one.answer for one in first.baselines if "option" in one.roles} == {"A", "C", "D"}


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("crop", "says"),
    [
        ("{dataset}_{x}", r"unknown place \{x\}; allowed: \{dataset\}, \{n\}"),
        ("{dataset}_{row}", r"it needs \{dataset\}, and either \{row\} and \{col\} or \{cell\}"),
        ("patch_{cell}", "it needs"),
        ("{dataset}_{row}_{col}_{cell}", "it needs"),
    ],
)
def test_a_pattern_that_cannot_be_read(tmp_path, crop, says):
    table(tmp_path, [kit.question(0)])
    with pytest.raises(OptionError, match=says):
        imported(tmp_path, tmp_path, crop=crop)


def test_grids_that_are_not_whole(tmp_path):
    rows = [kit.question(i) for i in range(3)]
    table(tmp_path, rows)
    for cell in ("1_1", "1_2", "2_1"):
        table(tmp_path, rows, f"m_Toy_patch_2_{cell}_openai_result.xlsx")
    with pytest.raises(
        RecordError,
        match=r"the 2x2 grid needs 4 cells, each once, numbered from 0 or from 1 throughout; there are 3 \(1_1, 1_2, 2_1\)",
    ):
        imported(tmp_path, tmp_path)
    table(tmp_path, rows, "m_Toy_patch_2_0_0_openai_result.xlsx")
    with pytest.raises(RecordError, match="each once, numbered from 0 or from 1 throughout"):
        imported(tmp_path, tmp_path)
    (tmp_path / "m" / "m_Toy_openai_result.xlsx").unlink()
    with pytest.raises(RecordError, match="results of 4 cells, but none of the full image"):
        imported(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"index": 99}, "index 99 is not among those of the full image"), ({"question": "Why?"}, "another question")],
)
def test_a_cell_of_another_dataset_is_refused(tmp_path, change, says):
    rows = [kit.question(i) for i in range(3)]
    table(tmp_path, rows)
    for cell in range(4):
        table(
            tmp_path,
            [*rows[:2], {**rows[2], **(change if cell == 3 else {})}],
            f"m_Toy_patch_2_{cell}_openai_result.xlsx",
        )
    with pytest.raises(RecordError, match=says):
        imported(tmp_path, tmp_path)


def test_names_without_a_model(tmp_path):
    path = kit.write(tmp_path / "x" / "some_model_Toy_openai_result.tsv", [kit.question(i) for i in range(3)])
    with pytest.raises(RecordError, match=r"does not begin with the name of a folder above it, .* type --model NAME"):
        imported(path, tmp_path)
    (found,), _ = imported(path, tmp_path, model="some_model")
    assert (found.run.model, found.task) == ("some_model", "Toy")
    with pytest.raises(RecordError, match="no such file or folder"):
        imported(tmp_path / "nowhere", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="no result files of VLMEvalKit"):
        imported(tmp_path / "empty", tmp_path)


def test_names_that_act_on_a_terminal_or_a_build_server_are_shown_harmless(tmp_path, capsys):
    model = "m\n::error::x\x1b[31m"
    kit.write(tmp_path / model / f"{model}_Toy\n::add-mask::y_openai_result.tsv", [kit.question(i) for i in range(3)])
    assert main(["import", "vlmevalkit", str(tmp_path), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert not any(one.startswith("::") for one in printed.splitlines())
    assert len(runs.find([tmp_path / "out"])) == 1


def test_models_whose_folders_become_equal_are_refused(tmp_path):
    for model in ("a b", "a_b"):
        kit.write(tmp_path / model / f"{model}_Toy_openai_result.tsv", [kit.question(i) for i in range(3)])
    with pytest.raises(
        RecordError, match=r"the models 'a b' and 'a_b' have the same folder, .*a_b; import them one by one"
    ):
        imported([tmp_path / "a b", tmp_path / "a_b"], tmp_path)
    assert not (tmp_path / "imported").exists()
    imported(tmp_path / "a b", tmp_path)
    with pytest.raises(RecordError, match="the models 'a b' and 'a_b' have the same folder"):
        imported(tmp_path / "a_b", tmp_path)
    (found,), _ = imported(tmp_path / "a b", tmp_path)
    assert found.run.model == "a b", "a second import of the same is no collision"


@pytest.mark.parametrize("model", [".", ".."])
def test_no_model_leads_out_of_the_folder(tmp_path, model):
    path = kit.write(tmp_path / f"{model}_Toy_openai_result.tsv", [kit.question(i) for i in range(3)])
    (found,), _ = imported(path, tmp_path, model=model)
    assert found.run.path.resolve().parent.parent == (tmp_path / "imported").resolve()
    assert found.run.model == model


def test_indices_that_are_texts(tmp_path):
    table(tmp_path, [{**kit.question(i), "index": name} for i, name in enumerate(("b-2", "a-1", "c-3"))])
    (found,), _ = imported(tmp_path, tmp_path)
    assert [json.loads(line)["input"] for line in found.log.read_text().splitlines()] == [
        "Which? 1",
        "Which? 0",
        "Which? 2",
    ]
    assert not any(math.isnan(value) for value in found.metrics.values() if value is not None)
