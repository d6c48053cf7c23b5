"""What a stranger's file can cost: numbers that size a table or a loop have bounds, huge numbers are one line, patterns are linear."""

import json
import re
import time
import tracemalloc

import polars as pl
import pytest

from lmms_patch import files
from lmms_patch.app import cli
from lmms_patch.ask import answers, captions
from lmms_patch.ask.answers import Asked
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError, RecordError, nearest
from tests.making.edited import rewrite
from tests.making.runs import one_cell_knows, world_run, write_run
from tests.sizes import size

HUGE = 10**400


@pytest.fixture
def table(tmp_path):
    """The table of a small run with baselines and wrong images."""
    spec, records, made = world_run(one_cell_knows, n=40)
    write_run(tmp_path / "run", {spec.name: (spec, records, made)})
    (path,) = (tmp_path / "run").glob("*_samples_*.parquet")
    return path


SIZES = [
    ("rows", (HUGE, -1, 1.5)),
    ("docs", (HUGE, -1)),
    ("settings.draws", (10**9, 0, HUGE)),
    ("settings.seed", (-1, HUGE)),
    ("settings.level", (5e-324, 1.0, HUGE)),
    ("settings.delta", (HUGE, 1e300)),
    ("settings.scale", (HUGE,)),
    ("settings.seconds", (HUGE, -1)),
    ("host.original", (HUGE, -1)),
    ("asked.grids", ([10**6], [HUGE])),
    ("asked.options.fold_seeds", (10**9, HUGE)),
    ("asked.options.null", (HUGE,)),
    ("asked.options.min_side", (HUGE,)),
    ("asked.kind", ("k" * 1_000_000 + "\x1b]8;;http://x\x07\n::error::x",)),
]


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in SIZES for value in values], ids=lambda one: str(one)[:30]
)
def test_a_number_that_sizes_something_has_bounds(table, capsys, key, value):
    """One number of a footer that is changed so costs nothing: a line and status 2, before anything is allocated."""

    def footer(told):
        *above, last = key.split(".")
        inside = told
        for name in above:
            inside = inside[name]
        inside[last] = value
        return told

    rewrite(table, footer=footer)
    tracemalloc.start()
    try:
        status = cli.main(["analyze", str(table.parent)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = capsys.readouterr().err
    assert status == 2, said
    assert said.startswith("lmms-patch: ")
    assert said.count("\n") == 1
    assert len(said) < 600
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    assert peak < 50_000_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", 32_000), ("cell", -1), ("wrong_from", -1)]
    + [("score", value) for value in (1e300, float("inf"), float("nan"))],
)
def test_a_number_of_a_row_has_bounds(table, capsys, name, value):
    rewrite(table, lambda frame: frame.with_columns(pl.lit(value, frame.schema[name]).alias(name)))
    assert cli.main(["analyze", str(table.parent)]) == 2
    said = capsys.readouterr().err
    assert f"{name} must be a number from" in said
    assert said.count("\n") == 1


# --- numbers that no float can hold ---------------------------------------------------------------

DIGITS = ["1" + "0" * 400, "-1" + "0" * 400, "9" * 5000, "1e400", "-1e400"]
DEEP = "[" * 100_000
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


@pytest.mark.parametrize("text", ["1e400", "Infinity", "9" * 5000])
def test_doc_ids_of_a_pruning_are_whole_numbers_of_bearable_size(tmp_path, text):
    from lmms_patch.tst.pruned import read

    (tmp_path / "pruned.json").write_text(f'{{"schema": 1, "base": "toy", "kept": [{{"doc_id": {text}}}]}}')
    with pytest.raises(RecordError, match="not a whole pruned"):
        read(tmp_path / "pruned.json")


def test_a_cell_of_ten_megabytes_is_one_line(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("dataset,model,n,rci\n" + "x" * 10_000_000 + ",m,3,0.1\n")
    assert cli.main(["report", "--from-csv", str(tmp_path / "t.csv"), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 2_200


# --- patterns -------------------------------------------------------------------------------------


def _segments(text):
    from lmms_patch.tst.options import segments

    return segments(text)


def _words(text):
    from lmms_patch.tst.templates import Texts

    return Texts.of([text])


def _published(text):
    from lmms_patch.present.page import published

    return published._WIDE.match(text)


def _recognised(text):
    return answers.recognise([Asked(text, "A"), Asked(text, text)])


READERS = [
    answers.options_in, answers.without_options, answers.first_words, answers.as_number, _recognised, captions.tokenize,
    lambda text: captions.CiderD([[text], ["b"]]).score(text, [text]), _segments, _words, _published,
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
