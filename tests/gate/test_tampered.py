"""A true run, changed in one place at a time: a gate refuses it, or says that it could not check, or judges what it judged before.

What is true is known from how the run was made: the files that ``tests.making.runs`` writes, before they are touched.
"""

import functools
import json
import operator
import re
import shutil

import pytest

from lmms_patch.compare import audit_records
from lmms_patch.compare.audit_file import UNPROVEN
from lmms_patch.errors import PatchError, RecordError
from lmms_patch.gate.judge import gate
from lmms_patch.gate.outputs import to_json
from lmms_patch.runs.logs import read_lines
from lmms_patch.runs.numbers import NUMBERS
from tests.gate.running import rules_file
from tests.making.files import sealed
from tests.making.runs import as_before, guess, unversioned, world_run, write_run
from tests.sizes import size

TASK, DOCS = "toy_rci2", 60
RULES = [
    {"name": "score", "metric": "fip", "min": 0.5, "margin": 0.3},
    {"name": "index", "metric": "*2", "min": -9, "max": 9},
    {"name": "others", "metric": "[ac]*", "min": 0, "interval": False},
    {"name": "gate", "require": ["valid gate", "looks"]},
    {"name": "docs", "max_excluded": 0.05, "min_docs": 50},
]
CHECKED = {"name": "checked", "require": "checked"}


def knows(stream, gold):
    """Knows 80 % on the full image, 60 % on the first cell; a wrong image tells nothing."""
    full = gold if stream.random() < 0.8 else guess(stream)
    return [full, gold if stream.random() < 0.6 else guess(stream), *(guess(stream) for _ in range(3))], [
        guess(stream) for _ in range(5)
    ]


def of_harness(data, docs=DOCS):
    """What the harness writes beside the numbers."""
    data["config"] = {"model": "hf", "limit": None, "resolved_cli_args": {"log_samples": True}}
    data["n-samples"] = {name: {"original": docs, "effective": docs} for name in data["configs"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The run as this version makes it, and as an earlier one did: nothing said how the numbers were made."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("now", "before"):
        path = write_run(folder / name, {TASK: world_run(knows, DOCS, per_cluster=2)})
        edited(folder / name, of_harness)
        if name == "before":
            as_before(path)
        else:
            sealed(path)
    return folder


def edited(folder, change=None, log=None):
    """Change the results file's content, or the list of the log's lines, in place.

    The digest of the results file, which takes no key, is that of the changed file: so the checks of numbers are tried.
    """
    (path,) = folder.glob("*_results.json")
    if change is not None:
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))
        if "lmms_patch" in data:
            sealed(path, answers=False)
    if log is not None:
        (file,) = folder.glob(f"*_samples_{TASK}.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(line) + "\n" for line in log(lines) or lines))
    return folder


def patch(data):
    return data["results"][TASK]["patch,none"]


def both(data, name, value):
    """Set a flat number in both places."""
    data["results"][TASK][f"{name},none"] = patch(data)[name] = value


# --- by name --------------------------------------------------------------------------------------


def fip_of_seven(data):
    data["results"][TASK]["acc,none"] = patch(data)["analysis"]["fip"]["value"] = 7.0


def fip_of_seven_everywhere(data):
    fip_of_seven(data)
    analysis = patch(data)["analysis"]
    analysis["fip"] |= {"low": 6.9, "high": 7.1}
    analysis["gate"]["fip"] = analysis["grids"]["2"]["fip"] = 7.0
    index = 1 - analysis["grids"]["2"]["mpp"]["value"] / 7
    analysis["grids"]["2"]["index"] |= {"value": index, "low": index - 0.1, "high": index + 0.1}
    analysis["grids"]["2"]["gap"] |= {"value": 7 * index, "low": 7 * index - 0.1, "high": 7 * index + 0.1}
    for stem, value in (("rci2", index), ("gap2", 7 * index)):
        for end, by in (("", 0), ("_low", -0.1), ("_high", 0.1)):
            both(data, stem + end, value + by)


def one_more_right(data):
    value = data["results"][TASK]["acc,none"] + 1 / DOCS
    data["results"][TASK]["acc,none"] = patch(data)["analysis"]["fip"]["value"] = patch(data)["analysis"]["gate"][
        "fip"
    ] = value


def interval_around_another(data):
    patch(data)["analysis"]["fip"] |= {"low": 0.95, "high": 0.99}


def index_interval_around_another(data):
    patch(data)["analysis"]["grids"]["2"]["index"] |= {"low": 5.0, "high": 6.0}
    both(data, "rci2_low", 5.0)
    both(data, "rci2_high", 6.0)


def more_docs(data):
    both(data, "n_docs", 100_000)
    patch(data)["analysis"]["n_docs"] = 100_000


def more_records(data):
    both(data, "records", 100_000)


def a_number_taken_away(data):
    assert patch(data)["rci2_adj"] is not None
    patch(data)["rci2_adj"] = None


def better_cells(data):
    found = patch(data)["analysis"]["grids"]["2"]
    found["mpp"] |= {"value": 0.99, "low": 0.9, "high": 1.0}
    data["results"][TASK]["acc_mpp2,none"] = 0.99
    index = 1 - 0.99 / found["fip"]
    found["index"] |= {"value": index, "low": index - 0.1, "high": index + 0.1}
    found["gap"] |= {"value": found["fip"] - 0.99, "low": -0.5, "high": 0.5}
    for stem in ("rci2", "gap2"):
        one = found["index" if stem == "rci2" else "gap"]
        for end, key in (("", "value"), ("_low", "low"), ("_high", "high")):
            both(data, stem + end, one[key])


def other_index(data):
    both(data, "rci2", 0.0)
    patch(data)["analysis"]["grids"]["2"]["index"] |= {"value": 0.0, "low": -0.1, "high": 0.1}
    both(data, "rci2_low", -0.1)
    both(data, "rci2_high", 0.1)


def nothing_left_out(data):
    both(data, "n_excluded2", 1)
    patch(data)["analysis"]["grids"]["2"]["excluded"] = 1


def flat_index(data):
    data["results"][TASK]["rci2,none"] = -0.5


def flat_in_both_places(data):
    both(data, "rci2_low", 0.3)


def flat_score(data):
    data["results"][TASK]["acc,none"] = 0.99


def flat_gate(data):
    both(data, "gate", 0)


def gate_without_its_margin(data):
    gate_of = patch(data)["analysis"]["gate"]
    gate_of |= {"threshold": 0.95, "delta": 0.95 - gate_of["chance"]}


def gate_that_fails(data):
    patch(data)["analysis"]["gate"] |= {"valid": False}
    both(data, "gate", 0)


def other_grids(data):
    data["configs"][TASK]["lmms_patch"]["grids"] = [2, 3]


def a_grid_gone(data):
    data["configs"][TASK]["lmms_patch"]["grids"] = []
    patch(data)["analysis"]["grids"] = {}


def a_grid_gone_from_the_numbers(data):
    patch(data)["analysis"]["grids"] = {}


def other_metric(data):
    patch(data)["analysis"]["metric"] = "f1"


def fewer_asked(data):
    data["n-samples"][TASK]["effective"] = 30


def more_asked(data):
    data["n-samples"][TASK] = {"original": 400, "effective": 400}


def limit_hidden(data):
    data["n-samples"][TASK]["original"] = 400


OF_FILE = [fip_of_seven, fip_of_seven_everywhere, one_more_right, interval_around_another, index_interval_around_another, more_docs, more_records, a_number_taken_away,
           better_cells, other_index, nothing_left_out, flat_index, flat_in_both_places, flat_score, flat_gate, gate_that_fails, other_grids, a_grid_gone,
           a_grid_gone_from_the_numbers, other_metric, fewer_asked, more_asked, limit_hidden]  # fmt: skip


def of_doc(change, doc=0):
    """A change of one doc's record."""

    def apply(lines):
        change(lines[doc]["patch"])

    apply.__name__ = change.__name__
    return apply


def full_right(record):
    value = 1 - record["views"][0]["scores"]["acc"]
    record["views"][0] |= {"scores": {"acc": value}, "items": {"acc": value}}


def score_without_its_item(record):
    record["views"][0]["scores"]["acc"] = 1 - record["views"][0]["scores"]["acc"]


def full_swapped_with_a_cell(lines):
    """Where they differ, of docs that are right on the full image only, so that MPP moves too."""
    for line in lines:
        views = line["patch"]["views"]
        for key in ("scores", "items"):
            views[0][key], views[1][key] = views[1][key], views[0][key]


def other_best(record):
    record["best"]["2"] = next(i for i in range(1, 5) if i != record["best"]["2"])


def best_is_the_full_image(record):
    record["best"]["2"] = 0


def a_cell_gone(record):
    del record["views"][4]


def left_out(record):
    record |= {"best": {}, "excluded": {"2": "too small"}}


def no_answer(record):
    record["views"][0] = {"kind": "full", "scores": {}, "items": {}, "failed": "timed out"}
    record |= {"best": {}, "excluded": {"2": "a call failed"}}


def an_error(record):
    record["views"][1]["error"] = "boom"


def other_grid(record):
    record["grids"] = [3]


def other_kind(record):
    record["kind"] = "pcri"


def other_base(record):
    record["base"] = "pear"


def other_number(record):
    record["doc_id"] = 7


def a_line_gone(lines):
    return lines[:-1]


def a_line_twice(lines):
    return [*lines, lines[0]]


def a_line_in_place_of_another(lines):
    return [*lines[:-1], lines[0]]


def every_line_twice(lines):
    return lines * 2


def every_second_line(lines):
    return lines[::2]


OF_LOG = [of_doc(full_right), of_doc(score_without_its_item), full_swapped_with_a_cell, of_doc(other_best), of_doc(best_is_the_full_image), of_doc(a_cell_gone),
          of_doc(left_out), of_doc(no_answer), of_doc(an_error), of_doc(other_grid), of_doc(other_kind), of_doc(other_base), of_doc(other_number),
          a_line_gone, a_line_twice, a_line_in_place_of_another, every_line_twice, every_second_line]  # fmt: skip


def of_rules(*rules):
    return {"schema": 1, "rules": list(rules)}


@pytest.mark.parametrize("when", ["now", "before"])
def test_untouched_runs_are_judged(made, when):
    found = gate(made / when, of_rules(*RULES, CHECKED))
    checked = next(one for one in found.verdicts if one.metric == "checked")
    assert {one.call for one in found.verdicts if one.rule == "score"} == {"pass"}
    assert (checked.call, bool(checked.reason)) == (("pass", False) if when == "now" else ("fail", True))
    assert bool([note for note in found.notes if "not checked" in note]) == (when == "before")


@pytest.mark.parametrize("when", ["now", "before"])
@pytest.mark.parametrize("change", OF_FILE, ids=lambda change: change.__name__)
def test_a_results_file_that_was_edited_is_refused(made, tmp_path, when, change):
    shutil.copytree(made / when, tmp_path / "run")
    without_index = change in (
        a_grid_gone,
        a_grid_gone_from_the_numbers,
    )  # else a rule says first that it finds nothing
    with pytest.raises(RecordError):
        gate(edited(tmp_path / "run", change), of_rules(*(RULES[:1] if without_index else RULES)))


@pytest.mark.parametrize("when", ["now", "before"])
@pytest.mark.parametrize("change", OF_LOG, ids=lambda change: change.__name__)
def test_a_log_that_was_edited_is_refused(made, tmp_path, when, change):
    shutil.copytree(made / when, tmp_path / "run")
    with pytest.raises(RecordError):
        gate(edited(tmp_path / "run", log=change), of_rules(*RULES))


def test_the_line_names_what_differs_with_both_values(made, tmp_path, capsys):
    from lmms_patch.app import cli

    shutil.copytree(made / "now", tmp_path / "run")
    true = json.loads(next((made / "now").glob("*_results.json")).read_text())["results"][TASK]["acc,none"]
    edited(tmp_path / "run", one_more_right)
    assert cli.main(["gate", str(tmp_path / "run"), "--config", str(rules_file(tmp_path, RULES[0]))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{true:.4g}" in line
    assert f"{true + 1 / DOCS:.4g}" in line
    assert "acc" in line


def test_answers_that_change_places_leave_every_sum_alone_but_not_the_digest(made, tmp_path):
    """One doc more is right and one less: FIP, MPP and the index stay; a paired comparison would not."""

    def exchanged(lines):
        alike = {}
        for line in lines:
            record = line["patch"]
            alike.setdefault(
                (tuple(view["scores"]["acc"] for view in record["views"][1:]), record["answer"]["gold"]), []
            ).append(record)
        pair = next(
            (a, b)
            for some in alike.values()
            for a in some
            for b in some
            if a["views"][0]["scores"] != b["views"][0]["scores"]
        )
        pair[0]["views"], pair[1]["views"] = pair[1]["views"], pair[0]["views"]

    shutil.copytree(made / "now", tmp_path / "run")
    with pytest.raises(RecordError, match="not the log that the run wrote"):
        gate(edited(tmp_path / "run", log=exchanged), of_rules(*RULES))
    shutil.copytree(made / "before", tmp_path / "old")
    found = gate(edited(tmp_path / "old", log=exchanged), of_rules(*RULES, CHECKED))
    assert {one.call for one in found.verdicts if one.metric == "checked"} == {"fail"}


# --- every number in turn ---------------------------------------------------------------------------


def leaves(found, path=()):
    """The path of every number, flag, text and null; of lists those of the first and the last entry."""
    if isinstance(found, dict):
        return [leaf for key, value in found.items() for leaf in leaves(value, (*path, key))]
    if isinstance(found, list):
        return [
            leaf
            for place in sorted({0, len(found) - 1} & set(range(len(found))))
            for leaf in leaves(found[place], (*path, place))
        ]
    return [path]


def changed(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1 if isinstance(value, int) else value * 0.9 + 0.0213
    return 0.5 if value is None else value + "x"


def said(found):
    """What was judged and how, without the words for people."""
    return [{**one, "reason": ""} for one in to_json(found)["verdicts"] if one["metric"] != "checked"]


def test_every_value_of_the_results_file_matters_or_is_not_judged(made, tmp_path, monkeypatch):
    """Refused, or named as unchecked, or all verdicts as before.

    The log stays as it is, so it is read from disk once.
    """
    rules = of_rules(*RULES, {"name": "luck", "metric": "*_adj", "max": 9}, CHECKED)
    folder = tmp_path / "run"
    shutil.copytree(made / "now", folder)
    (path,) = folder.glob("*_results.json")
    lines = list(read_lines(next(folder.glob("*.jsonl")), lean=True))
    monkeypatch.setattr(audit_records, "read_lines", lambda path, lean: lines)
    data, before = json.loads(path.read_text()), said(gate(folder, rules))
    places = leaves(data["results"], ("results",)) + leaves(data["configs"], ("configs",))
    assert len(places) > 250
    places = places[:: size(4, 1)]
    refused_places, named, same = 0, [], []
    for place in places:
        at = functools.reduce(operator.getitem, place[:-1], data)
        true = at[place[-1]]
        at[place[-1]] = changed(true)
        path.write_text(json.dumps(data))
        sealed(path, answers=False)
        at[place[-1]] = true
        try:
            judged = gate(folder, rules)
        except PatchError:
            refused_places += 1
            continue
        if any("not checked: " in note for note in judged.notes):
            named.append(".".join(map(str, place)))
        else:
            assert said(judged) == before, place
            same.append(".".join(map(str, place)))
    assert set(named) <= {f"results.{TASK}.patch,none.analysis.form"}
    assert refused_places > size(45, 180)
    assert not [
        one
        for one in same
        if re.search(r"\.(value|low|high|se|n|valid|threshold|fip|mpp|excluded|n_docs|records|floor)$", one)
    ]


def test_narrower_intervals_are_refused(made, tmp_path):
    for share in (0.5, 0.99):
        shutil.copytree(made / "now", tmp_path / str(share))

        def narrower(data, share=share):
            found = patch(data)["analysis"]["grids"]["2"]["index"]
            for end in ("low", "high"):
                found[end] = found["value"] + share * (found[end] - found["value"])
                both(data, f"rci2_{end}", found[end])

        with pytest.raises(RecordError, match=r"analysis\.grids\.2\.index\.(low|high|se)"):
            gate(edited(tmp_path / str(share), narrower), of_rules(*RULES))


# --- without a log ----------------------------------------------------------------------------------


def test_a_log_that_the_run_wrote_and_that_is_gone_is_refused(made, tmp_path):
    shutil.copytree(made / "now", tmp_path / "run")
    next((tmp_path / "run").glob("*.jsonl")).unlink()
    with pytest.raises(RecordError, match="the run wrote a sample log of toy_rci2, which is not there"):
        gate(tmp_path / "run", of_rules(*RULES))
    found = gate(
        made / "before", of_rules({"name": "drop", "metric": "fip", "max_drop": 0.5}), baseline=tmp_path / "run"
    )
    assert any(note.startswith("the baseline of toy_rci2") and "no sample log" in note for note in found.notes)


def test_without_a_log_what_the_file_says_of_itself_is_checked_and_the_rest_is_told(made, tmp_path):
    def never_logged(data):
        data["config"]["resolved_cli_args"]["log_samples"] = False

    shutil.copytree(made / "now", tmp_path / "run")
    next((tmp_path / "run").glob("*.jsonl")).unlink()
    found = gate(edited(tmp_path / "run", never_logged), of_rules(*RULES, CHECKED))
    assert {one.rule: one.call for one in found.verdicts}["checked"] == "fail"
    assert any("no sample log" in note for note in found.notes)
    for number, change in enumerate(
        (
            fip_of_seven_everywhere,
            interval_around_another,
            flat_index,
            gate_that_fails,
            a_grid_gone,
            more_docs,
            other_index,
        )
    ):
        shutil.copytree(tmp_path / "run", tmp_path / str(number))
        with pytest.raises(RecordError):
            gate(edited(tmp_path / str(number), change), of_rules(RULES[0]))


# --- a witness that is missing, an age that is claimed, columns that nobody reads --------------------


def without_counts(data):
    """Which part of the benchmark was asked, in all three places: the run over a part passes as whole."""
    data["config"] |= {"limit": None}
    del data["n-samples"]


def without_counts_of_the_task(data):
    del data["n-samples"][TASK]


def column_from_nowhere(data):
    data["results"][TASK]["em,none"] = 0.987


def number_from_nowhere(data):
    both(data, "recall", 0.987)


@pytest.mark.parametrize(
    "change",
    [without_counts, without_counts_of_the_task, column_from_nowhere, number_from_nowhere],
    ids=lambda change: change.__name__,
)
def test_what_lacks_its_witness_is_named_and_fails_where_all_must_be_checked(made, tmp_path, change):
    shutil.copytree(made / "now", tmp_path / "run")
    found = gate(edited(tmp_path / "run", change), of_rules(*RULES, CHECKED))
    assert {one.rule: one.call for one in found.verdicts}["checked"] == "fail"
    assert sum("not checked" in note for note in found.notes) == 1


def point_from_nowhere(data):
    patch(data)["analysis"] |= {"curve": {"4": patch(data)["analysis"]["fip"]}}


def older_with_narrower_intervals(data, numbers=0):
    patch(data)["made"]["numbers"] = numbers
    found = patch(data)["analysis"]["grids"]["2"]["index"]
    for end in ("low", "high"):
        found[end] = found["value"] + 0.5 * (found[end] - found["value"])
        both(data, f"rci2_{end}", found[end])


def older_by_one(data):
    """The luck-corrected index is computed otherwise since version 2."""
    patch(data)["made"]["numbers"] = 1
    found = patch(data)["analysis"]["grids"]["2"]["adj"]["estimate"]
    found["low"] = found["value"] - 0.01
    both(data, "rci2_adj_low", found["low"])


def without_necessity(data):
    del patch(data)["analysis"]["necessity"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            older_with_narrower_intervals,
            f"made.numbers is 0, but it holds what version {NUMBERS} was the first to write",
        ),
        (older_by_one, f"made.numbers is 1, but it holds what version {NUMBERS} was the first to write"),
        (
            functools.partial(older_with_narrower_intervals, numbers=999),
            f"its numbers are of version 999; this version of lmms-patch computes version {NUMBERS}",
        ),
        (point_from_nowhere, "analysis.curve"),
        (without_necessity, "analysis.necessity"),
    ],
    ids=["no version", "version 1", "version 999", "a point of a curve", "no necessity map"],
)
def test_a_run_is_as_old_as_what_it_holds(made, tmp_path, change, said):
    shutil.copytree(made / "now", tmp_path / "run")
    with pytest.raises(RecordError) as caught:
        gate(edited(tmp_path / "run", change), of_rules(*RULES))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_tells_how_old_a_run_is_where_its_file_was_made_to_look_older(made, tmp_path):
    def older(data):
        older_with_narrower_intervals(data)
        unversioned(patch(data))

    def of_now(lines):
        for line in lines:
            line["patch"]["answer"] |= {"candidates": 4, "gold_at": 1 + "ABCD".index(line["patch"]["answer"]["gold"])}

    shutil.copytree(made / "now", tmp_path / "run")
    assert any("not checked" in note for note in gate(edited(tmp_path / "run", older), of_rules(*RULES)).notes)
    with pytest.raises(RecordError, match=r"made\.numbers is 0, but it holds what version 2 was the first to write"):
        gate(edited(tmp_path / "run", log=of_now), of_rules(*RULES))


def sd_of_mean(values):
    """The standard error of a mean by its definition."""
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)) ** 0.5


def test_columns_with_standard_errors_are_computed_again(made, tmp_path):
    """The harness's from each doc's score, by hand; ours are those of the estimates.

    Of a bootstrap it is said that nobody can.
    """
    shutil.copytree(made / "now", tmp_path / "true")
    (log,) = (made / "now").glob(f"*_samples_{TASK}.jsonl")
    views = [json.loads(line)["patch"] for line in log.read_text().splitlines()]
    right = sd_of_mean([one["views"][0]["scores"]["acc"] for one in views])
    best = sd_of_mean([max(view["scores"]["acc"] for view in one["views"][1:]) for one in views])

    def as_written(data):
        index = patch(data)["analysis"]["grids"]["2"]["index"]["se"]
        for name, value in (
            ("acc_stderr", right),
            ("acc_stderr_clt", right),
            ("acc_mpp2_stderr_clt", best),
            ("rci2_stderr", index),
            ("acc_stderr_clustered", "N/A"),
        ):
            data["results"][TASK][f"{name},none"] = value
        data["configs"][TASK]["metric_list"] = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]

    def checked(folder):
        (one,) = [one for one in gate(folder, of_rules(CHECKED)).verdicts if one.metric == "checked"]
        return one.call, one.reason

    edited(tmp_path / "true", as_written)
    assert checked(tmp_path / "true") == ("pass", "")
    for name in ("acc_stderr", "acc_stderr_clt", "acc_mpp2_stderr_clt", "rci2_stderr"):
        shutil.copytree(tmp_path / "true", tmp_path / name)
        with pytest.raises(RecordError, match=name):
            gate(
                edited(tmp_path / name, lambda data, name=name: data["results"][TASK].update({f"{name},none": 0.0125})),
                of_rules(CHECKED),
            )

    def bootstrapped(data):
        data["configs"][TASK]["metric_list"][0]["aggregation"] = "f1"
        data["results"][TASK]["acc_stderr,none"] = 0.0125

    call, reason = checked(edited(tmp_path / "true", bootstrapped))
    assert call == "pass"
    assert reason.endswith("only the run could compute: acc_stderr")


def test_docs_are_those_from_the_offset_on(made, tmp_path):
    def later(data):
        data["config"]["offset"] = 5
        data["n-samples"][TASK] = {"original": DOCS + 5, "effective": DOCS}

    shutil.copytree(made / "now", tmp_path / "run")
    with pytest.raises(RecordError, match=f"docs 0 to 59 have a record, but the harness asked {DOCS} from doc 5 on"):
        gate(edited(tmp_path / "run", later), of_rules(CHECKED))


def test_a_flat_number_that_is_changed_wherever_it_stands_is_refused(made, tmp_path):
    shutil.copytree(made / "now", tmp_path / "run")
    (path,) = (tmp_path / "run").glob("*_results.json")
    true = json.loads(path.read_text())
    names = [name for name, value in patch(true).items() if isinstance(value, (int, float))]
    assert {"rci2", "rci2_low", "gap2", "n_docs", "n_failed", "fip0", "n_excluded2", "chance"} <= set(names)
    for name in names:
        data = json.loads(path.read_text())
        both(data, name, changed(patch(data)[name]))
        path.write_text(json.dumps(data))
        with pytest.raises(RecordError):
            gate(tmp_path / "run", of_rules(RULES[0]))
        path.write_text(json.dumps(true))


# --- who a run is, and how much of its benchmark it asked ----------------------------------------------


def whole_by_its_own_word(data):
    """No limit, and as many docs as were asked are all there are; no number is touched."""
    data["config"]["limit"] = None
    data["n-samples"][TASK] = {"original": DOCS // 3, "effective": DOCS // 3}


def test_a_part_does_not_pass_for_the_whole_benchmark(tmp_path):
    """The digest covers how many docs there are.

    Older runs tell by whose images their docs were shown, or it is said that nothing tells.
    """
    spec, records, plan = world_run(knows, DOCS, per_cluster=2)

    def honest(data):
        of_harness(data)
        data["config"]["limit"] = DOCS // 3
        data["n-samples"][TASK] = {"original": DOCS, "effective": DOCS // 3}

    path = write_run(tmp_path / "run", {TASK: (spec, records[: DOCS // 3], plan)}, part_of_plan=True)
    edited(tmp_path / "run", honest)
    sealed(path)
    allowed = of_rules({**RULES[0], "allow_limit": True}, CHECKED)
    assert gate(tmp_path / "run", allowed).status == 0
    with pytest.raises(PatchError, match="not the benchmark"):
        gate(tmp_path / "run", of_rules(RULES[0]))
    with pytest.raises(RecordError, match="the records tell of 60 docs or more, but the harness's count is 20"):
        gate(edited(tmp_path / "run", whole_by_its_own_word), of_rules(RULES[0]))

    def of_fewer(data):
        patch(data)["made"]["all_docs"] = DOCS // 3

    with pytest.raises(RecordError, match=r"the records tell of 2\d docs or more"):  # by whose images were shown
        gate(edited(tmp_path / "run", of_fewer), of_rules(RULES[0]))

    def on_own_images(lines):
        for line in lines:
            line["patch"]["wrong_image"]["from"] %= DOCS // 3

    with pytest.raises(RecordError, match="not the log that the run wrote"):
        gate(edited(tmp_path / "run", log=on_own_images), of_rules(RULES[0]))


def test_an_older_run_tells_how_many_docs_there_are_by_the_images_that_were_exchanged(made, tmp_path):
    shutil.copytree(made / "before", tmp_path / "run")

    def notes():
        return [note for note in gate(tmp_path / "run", of_rules(RULES[0])).notes if note.endswith(UNPROVEN)]

    assert not notes()

    def on_a_later_image(lines):
        for line in lines:
            line["patch"]["wrong_image"]["from"] += 1

    edited(tmp_path / "run", log=on_a_later_image)
    with pytest.raises(
        RecordError, match=f"the records tell of {DOCS + 1} docs or more, but the harness's count is {DOCS}"
    ):
        notes()

    def on_no_other_image(lines):
        for line in lines:
            del line["patch"]["wrong_image"]

    edited(tmp_path / "run", log=on_no_other_image)
    assert notes() == [f"{TASK} of hf: {UNPROVEN}"]


def test_a_task_under_the_name_of_another_is_refused(tmp_path):
    """Entries, configs and logs of two tasks change places, and no number is forged; the log of each knows its task."""
    worlds = {
        name: world_run(knows, DOCS, per_cluster=2, seed=seed, base=name) for seed, name in enumerate(("toy", "tox"))
    }
    path = write_run(tmp_path / "run", {f"{name}_rci2": world for name, world in worlds.items()})
    swapped = {"toy_rci2": "tox_rci2", "tox_rci2": "toy_rci2"}
    assert gate(tmp_path / "run", of_rules(RULES[0])).status == 0

    def exchange(data):
        for part in ("results", "configs", "n-samples"):
            data[part] = {swapped[name]: value for name, value in data[part].items()}

    edited(tmp_path / "run", exchange)
    logs = {name: next(path.parent.glob(f"*_samples_{name}.jsonl")) for name in swapped}
    texts = {name: log.read_text() for name, log in logs.items()}
    for name, log in logs.items():
        log.write_text(texts[swapped[name]])
    with pytest.raises(RecordError, match=r"task to[xy]_rci2, but the run reported to[xy]_rci2"):
        gate(tmp_path / "run", of_rules(RULES[0]))


@pytest.mark.parametrize(
    ("numbers", "said"), [(999, "of version 999"), (-1, "made.numbers must be"), ("3", "made.numbers must be")]
)
def test_a_version_that_no_run_of_ours_can_have_is_refused(made, tmp_path, numbers, said):
    def claimed(data):
        patch(data)["made"]["numbers"] = numbers

    shutil.copytree(made / "now", tmp_path / "run")
    with pytest.raises(RecordError, match=said):
        gate(edited(tmp_path / "run", claimed), of_rules(RULES[0]))


def test_a_copy_under_another_date_is_named_where_it_stands_as_the_baseline(made, tmp_path):
    shutil.copytree(made / "now", tmp_path / "run")
    for file in (tmp_path / "run").iterdir():
        file.rename(file.with_name(file.name.replace("2026-01-01", "2025-12-31")))

    def earlier(data):
        data["date"] = "2025-12-31T00-00-00.000000"

    edited(tmp_path / "run", earlier)
    found = gate(made / "now", of_rules({"name": "drop", "metric": "fip", "max_drop": 0.0}), baseline=tmp_path / "run")
    assert [one.call for one in found.verdicts] == ["pass"]
    (note,) = [note for note in found.notes if "every score is the baseline's" in note]
    assert "2025-12-31" in note
    again = world_run(knows, DOCS, per_cluster=2, answers=1)
    write_run(tmp_path / "again", {TASK: again})
    edited(tmp_path / "again", of_harness)
    found = gate(
        made / "now", of_rules({"name": "drop", "metric": "fip", "max_drop": 0.5}), baseline=tmp_path / "again"
    )
    assert not [note for note in found.notes if "every score is the baseline's" in note]


def test_a_rule_on_a_number_of_a_later_version_says_so(made, monkeypatch):
    from lmms_patch.runs import catalogue

    row = catalogue.Number(
        "later{key}", "a number", lambda kind, keys: keys.sets, lambda a, key: catalogue.ABSENT, measured=True
    )
    monkeypatch.setattr(catalogue, "NUMBERS", (*catalogue.NUMBERS, row))
    rules = of_rules({"name": "later", "metric": "later*", "min": 0})
    with pytest.raises(
        PatchError, match=r"matches nothing in toy_rci2 or the others; .* is of an earlier version of lmms-patch"
    ):
        gate(made / "before", rules)
    with pytest.raises(PatchError, match=r"matches nothing in toy_rci2 or the others; there is"):
        gate(made / "now", rules)
