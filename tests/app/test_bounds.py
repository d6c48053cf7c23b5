"""What a stranger's file can cost: numbers that size a table or a loop have bounds, huge numbers are one line, patterns are linear."""

import copy
import json
import re
import time
import tracemalloc

import msgspec
import pytest
from msgspec import Raw

from lmms_patch import files
from lmms_patch.app import cli
from lmms_patch.ask import answers, captions
from lmms_patch.ask.answers import Asked
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.present.report.examples import answers_of, example
from lmms_patch.runs.logs import Line
from lmms_patch.runs.results import samples_file
from tests.making.logged import read_samples
from tests.making.runs import as_line, as_record, one_cell_knows, world_run, write_run
from tests.sizes import size

HUGE = 10**400


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run with baselines and wrong images: its folder, results and log."""
    folder = tmp_path_factory.mktemp("bounds")
    spec, records, made = world_run(one_cell_knows, n=40)
    write_run(folder, {spec.name: (spec, records, made)})
    return folder, next(folder.rglob("*_results.json")), next(folder.rglob("*.jsonl"))


def put(document, path, value):
    """A copy with another value at a path."""
    out = copy.deepcopy(document)
    inside = out
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return out


def spoiled(run, folder, where, path, value):
    """The run with one value changed: in its results, or in a line of its log that has baselines."""
    _, results, log = run
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    data = json.loads(results.read_text())
    if where == "log":
        at = next(i for i, line in enumerate(lines) if len(line["patch"]["baselines"]) > 1)
        lines[at] = put(lines[at], ("patch", *path), value)
    elif where == "results":
        task = next(iter(data["results"]))
        data = put(data, ("results", task, "patch,none", *path), value)
    else:
        data = put(data, ("configs", next(iter(data["configs"])), "lmms_patch", *path), value)
    (folder / results.name).write_text(json.dumps(data))
    (folder / log.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


SIZES = [
    ("log", ("doc_id",), (HUGE, -1)),
    ("log", ("best", "2"), (10**6, -1, HUGE)),
    ("log", ("views", 1, "n"), (10**6, -1, HUGE)),
    ("log", ("views", 1, "cell"), (10**6, -1)),
    ("log", ("views", 0, "scores", "acc"), (HUGE, 1e300, float("inf"), float("nan"))),
    ("log", ("image_sizes", 0, 0), (10**9, 0, HUGE)),
    ("log", ("baselines", 0, "scores", "acc"), (HUGE, 1e300)),
    ("log", ("baselines", 0, "roles"), (None, [None])),
    ("log", ("answer", "options"), (HUGE, -1, 10**9)),
    ("log", ("wrong_image", "from"), (HUGE, -1)),
    ("results", ("records",), (HUGE, -1, 1.5)),
    ("results", ("settings", "draws"), (10**9, 0, HUGE)),
    ("results", ("settings", "seed"), (-1, HUGE)),
    ("results", ("settings", "level"), (5e-324, 1.0, HUGE)),
    ("results", ("settings", "delta"), (HUGE, 1e300)),
    ("results", ("settings", "scale"), (HUGE, float("inf"))),
    ("results", ("settings", "seconds"), (HUGE, -1)),
    ("results", ("analysis", "fip", "value"), (HUGE, 1e300)),
    ("results", ("analysis", "fip", "n"), (HUGE, -1)),
    ("results", ("analysis", "grids", "2", "index", "clusters"), (HUGE, -1)),
    ("results", ("analysis", "grids", "2", "index", "level"), (HUGE, 0.0)),
    ("results", ("analysis", "chance", "value"), (HUGE,)),
    ("described", ("grids",), ([10**6], [HUGE])),
    ("described", ("options", "fold_seeds"), (10**9, HUGE)),
    ("described", ("options", "null"), (HUGE,)),
    ("described", ("options", "min_side"), (HUGE,)),
]


@pytest.mark.parametrize(
    ("where", "path", "value"), [(w, p, v) for w, p, values in SIZES for v in values], ids=lambda one: str(one)[:30]
)
def test_a_number_that_sizes_something_has_bounds(run, tmp_path, capsys, where, path, value):
    """One number of a file that is changed so costs nothing: a line and status 2, before anything is allocated."""
    folder = spoiled(run, tmp_path, where, path, value)
    tracemalloc.start()
    try:
        status = cli.main(["analyze", str(folder)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = capsys.readouterr().err
    assert status == 2, said
    assert said.startswith("lmms-patch: ")
    assert said.count("\n") == 1
    assert len(said) < 600
    assert peak < 50_000_000


def test_the_run_itself_can_be_analysed(run, capsys):
    """The bounds let pass what we write."""
    assert cli.main(["analyze", str(run[0])]) == 0
    assert list(read_samples(run[2]))
    assert "rci2" in capsys.readouterr().out.lower()


# --- numbers that no float can hold ---------------------------------------------------------------

DIGITS = ["1" + "0" * 400, "-1" + "0" * 400, "9" * 5000, "1e400", "-1e400"]
DEEP = "[" * 100_000


@pytest.mark.parametrize("number", [*DIGITS, DEEP], ids=lambda text: text[:6])
@pytest.mark.parametrize(
    "command",
    [["show"], ["analyze"], ["leaderboard"], ["gate", "-c", "model-regression"], ["compare"], ["report"], ["gap"]],
)
def test_huge_numbers_and_depths_in_a_results_file_are_one_line(run, tmp_path, capsys, command, number):
    text = run[1].read_text()
    assert '"seed": 0' in text
    (tmp_path / run[1].name).write_text(text.replace('"seed": 0', f'"seed": {number}'))
    (tmp_path / run[2].name).write_bytes(run[2].read_bytes())
    name, *options = command
    both = [str(tmp_path)] * (1 + (name in ("compare", "gap")))
    more = ["--output", str(tmp_path / "out")] if name in ("leaderboard", "report") else []
    assert cli.main([name, *both, *options, *more]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 600
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [*DIGITS, DEEP, "NaN", "-Infinity"], ids=lambda text: text[:6])
def test_a_line_of_a_log_with_such_a_number_is_one_line(run, tmp_path, number):
    log = tmp_path / run[2].name
    first, rest = run[2].read_text().split("\n", 1)
    log.write_text(re.sub(r'"acc": (1|0)\.0', f'"acc": {number}', first, count=1) + "\n" + rest)
    with pytest.raises(RecordError, match=r"line 1: (cut or not JSON|patch\.\S+ must be a finite number)"):
        list(read_samples(log))


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{b}: &{b}\n  <<: [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)
RULES = "schema: 1\nrules:\n- name: a\n  task: '*'\n  metric: fip\n  min: {}\n"


@pytest.mark.parametrize("text", [BOMB, MERGES, "a: &a [*a]", DEEP[:5000], "a: " + "x" * 1_000_001, *(f"a: {number}" for number in DIGITS[:3]), "a: 0x" + "f" * 5000, "a: " + "1:" * 400 + "1"],
                         ids=["lists", "merges", "itself", "deep", "long", "1", "2", "3", "hex", "sexagesimal"])  # fmt: skip
def test_a_yaml_file_holds_no_more_than_it_says(text, tmp_path):
    """References to references to ... would be 10 billion values: refused at once, by rules and profiles alike."""
    from lmms_patch.ask import profiles
    from lmms_patch.gate import rules

    began = time.process_time()
    with pytest.raises(ValueError, match=r"\w"):
        files.parse_yaml(text)
    (tmp_path / "x.yaml").write_text(text)
    for read in (rules.read, profiles.read):
        with pytest.raises(OptionError) as told:
            read(tmp_path / "x.yaml")
        assert len(str(told.value)) < 600
    assert time.process_time() - began < 2


def test_references_of_ordinary_rules_stay_possible():
    assert files.parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }


@pytest.mark.parametrize("number", [*DIGITS, ".inf", ".nan", "-.inf"], ids=lambda text: text[:6])
def test_a_limit_that_no_number_can_have_is_refused(tmp_path, number):
    from lmms_patch.gate import rules

    (tmp_path / "x.yaml").write_text(RULES.format(number))
    with pytest.raises(OptionError) as told:
        rules.read(tmp_path / "x.yaml")
    assert len(str(told.value)) < 600


def test_ordinary_json_is_read_as_ever():
    text = '{"a": [1, -0, -0.0, 1e5, 18446744073709551615, NaN], "b": null, "c": "x"}'
    assert repr(files.parse_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**18])
def test_options_have_bounds(value):
    for name in ("fold_seeds", "seed", "null", "min_side", "chance", "scale"):
        with pytest.raises(OptionError) as told:
            Options.from_mapping({name: value}, "task")
        assert len(str(told.value)) < 200


def test_doc_ids_of_a_subset_are_whole_numbers_of_bearable_size(tmp_path):
    from lmms_patch.compare.gap_sides import read_subset

    for text in ("9" * 5000, "٣", "1e3"):
        (tmp_path / "ids.txt").write_text(f"1\n{text}\n")
        with pytest.raises(RecordError, match="line 2"):
            read_subset(tmp_path / "ids.txt")
    for text in ("1e400", "Infinity", "9" * 5000):
        (tmp_path / "pruned.json").write_text(f'{{"schema": 1, "base": "toy", "kept": [{{"doc_id": {text}}}]}}')
        with pytest.raises(RecordError, match="not a whole pruned"):
            read_subset(tmp_path / "pruned.json")


def test_losses_that_are_no_numbers_are_answers():
    line = as_line({"patch": {}, "filtered_resps": ["(1..2, True)", "(1.5, False)"]})
    assert answers_of(line) == ["(1..2, True) | (1.5, False)"]
    assert answers_of(msgspec.structs.replace(line, filtered_resps=["(-1.5e-3, True)", "(.5, False)"])) == ["option 0"]


@pytest.mark.parametrize("box", [[0, 0, HUGE, 1], [0, 0, 1.5, 1], [0, 0, 1], None, "x"])
def test_boxes_are_checked_where_they_are_drawn(run, tmp_path, box):
    lines = [json.loads(line) for line in run[2].read_text().splitlines()]
    for line in lines:
        good = copy.deepcopy(line)
        line["patch"]["views"][1]["boxes"] = [box]
        with pytest.raises(RecordError, match=r"patch\.views\[1\]\.boxes"):
            example("e", "local", Line(Raw(json.dumps(line["patch"])), record=as_record(good["patch"])), "acc")
        line["patch"]["views"][1]["boxes"] = [[0, 0, 4, 4]]
        assert example("e", "local", as_line(line), "acc").grids[2][0].box[0] == 0


def test_a_cell_of_ten_megabytes_is_one_line(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("dataset,model,n,rci\n" + "x" * 10_000_000 + ",m,3,0.1\n")
    assert cli.main(["report", "--from-csv", str(tmp_path / "t.csv"), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 2_200


def test_a_metric_of_a_megabyte_is_one_line(run, tmp_path, capsys):
    data = json.loads(run[1].read_text())
    task = next(iter(data["configs"]))
    data["configs"][task]["lmms_patch"]["kind"] = "k" * 1_000_000 + "\x1b]8;;http://x\x07\n::error::x"
    (tmp_path / run[1].name).write_text(json.dumps(data))
    assert cli.main(["show", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 2_200
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)


@pytest.mark.parametrize("name", ["../../../etc/passwd", "a/b", "x" * 5000, "a\0b", ".."])
def test_no_task_leads_out_of_the_folder_of_its_run(tmp_path, name):
    """The log of a task lies beside the results file, or nowhere."""
    (tmp_path / "run" / "b_samples_x").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text("{}")
    assert samples_file(tmp_path / "run" / "b_results.json", name) is None
    assert samples_file(tmp_path / "run" / "b_results.json", "x/../../secret") is None


# --- patterns -------------------------------------------------------------------------------------


def _segments(text):
    from lmms_patch.tst.options import segments

    return segments(text)


def _words(text):
    from lmms_patch.tst.templates import Texts

    return Texts.of([text])


def _published(text):
    from lmms_patch.present.report import published

    return published._WIDE.match(text)


def _losses(text):
    from lmms_patch.runs.logs import _answer

    return _answer([text, text])


def _recognised(text):
    return answers.recognise([Asked(text, "A"), Asked(text, text)])


READERS = [
    answers.options_in, answers.without_options, answers.first_words, answers.as_number, _recognised, captions.tokenize,
    lambda text: captions.CiderD([[text], ["b"]]).score(text, [text]), _segments, _words, _published, _losses,
    lambda text: nearest(text, [text + "x", "y"]), lambda text: answers.without_letters((text, text)),
]  # fmt: skip
UNITS = [
    "a", "A. ", "(A) (B) ", "A) x\n", "\nA. x\nB. y", "(", " ", "\n", "1", "1.", "1,", "a.", "'", "n't", "a-",
    ", n = ", ",", " and ", "(1", "[ ", "é",
]  # fmt: skip


SHORT = size(2_000, 10_000)
"""Characters of the short text."""


@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_readers_of_answers_take_time_in_proportion_to_the_text(unit):
    """Ten times the text takes at most 25 times as long: in CPU time, the best of several, on what is hardest for a pattern."""

    def seconds(read, length, times=3):
        text, best = (unit * (length // len(unit) + 1))[:length], 1e9
        for _ in range(times):
            began = time.process_time()
            read(text)
            best = min(best, time.process_time() - began)
        return best

    for number, read in enumerate(READERS):
        long = seconds(read, 10 * SHORT, 1)
        assert long < 5
        if long > 0.03:
            assert min(long, seconds(read, 10 * SHORT, 2)) <= 25 * seconds(read, SHORT, 3) + 0.01, number


def test_options_of_a_prompt_by_hand():
    """Lists at line starts win over marks within lines; marks after another one on its line do not begin it."""
    assert answers.options_in("Pick (A) or (B)?\n A. one\n  B. two A. three\nC. end") == ("one", "two A. three", "end")
    assert answers.options_in("x A. one B. two") == ("one", "two")
    assert answers.options_in("A.\nB.\nC.") == ("", "", "")
    assert answers.options_in("A. a\n\tB. b") == ("a", "b")
