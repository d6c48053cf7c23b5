"""Standard errors and ends of intervals as columns of a results file."""

import json

from lmms_patch.runs.columns import with_ends, with_errors
from lmms_patch.runs.run import find
from tests.making.magic import doc, write_magic_run
from tests.making.runs import mc_run, write_run

ENDS = ("_stderr", "_stderr_clt", "_stderr_clustered")


def values_of(result):
    """What the harness's file has of a task."""
    return json.loads(result.run.path.read_text())["results"][result.task]


def as_the_host_writes(values):
    """The columns of a task with the harness's three columns of standard errors beside each."""
    return {
        key.replace(",", f"{end},"): value if not end else "N/A" for key, value in values.items() for end in ("", *ENDS)
    }


def test_a_wrapped_task_keeps_the_columns_of_the_native_metric(tmp_path):
    [result] = find([write_run(tmp_path, {"toy_rci2": mc_run(60)})])[0].results
    values = as_the_host_writes(
        {key: value for key, value in values_of(result).items() if "_low" not in key and "_high" not in key}
    )
    values["acc_stderr_clt,none"] = values["acc_stderr,none"] = 0.5  # as the harness computed them
    made = with_ends(with_errors(values, [result]), [result])
    assert [made[f"acc{end},none"] for end in ENDS] == [0.5, 0.5, "N/A"]
    assert made["gap2_stderr,none"] == result.measures["gap2"].se > 0
    assert (made["gap2_low,none"], made["gap2_high,none"]) == (
        result.measures["gap2"].low,
        result.measures["gap2"].high,
    )
    assert [key for key, value in made.items() if value == "N/A"] == ["acc_stderr_clustered,none"]
    assert [key for key, value in made.items() if isinstance(value, dict)] == []
    assert made["n_docs,none"] == 60


def test_a_standard_error_of_other_docs_is_not_put_beside_a_number(tmp_path):
    """Where calls failed, the harness's own number is of all docs, and ours of those that were answered."""
    [result] = find([write_run(tmp_path, {"toy_rci2": mc_run(60)})])[0].results
    result.native.values["acc"] -= 0.01
    values = values_of(result)
    made = with_errors(as_the_host_writes(values | {"acc,none": values["acc,none"] - 0.01}), [result])
    assert made["acc_stderr,none"] == "N/A"
    assert made["gap2_stderr,none"] > 0


def magic_run(folder):
    """A MAGIC run whose results file has no ends of intervals; and its path."""
    said = ["I see R1.\n\nIt is a dog.\n\nAnswer: dog", "R2 is a cat.\n\nSo it is a cat.\n\nAnswer: cat"] * 15
    write_magic_run(folder, {"all": [doc(f"q{n}", text) for n, text in enumerate(said)]})
    [run] = find([folder])
    return run.results[0], run.path


def test_all_metrics_of_a_magic_task_are_ours(tmp_path):
    result, _ = magic_run(tmp_path)
    made = with_ends(with_errors(as_the_host_writes(values_of(result)), [result]), [result])
    assert "N/A" not in made.values()
    assert [key for key, value in made.items() if isinstance(value, dict)] == []
    known = {
        name: one.se
        for name, one in result.measures.items()
        if one.se is not None and f"{name},{result.filter}" in made
    }
    assert known
    assert {name: made[f"{name}_stderr,{result.filter}"] for name in known} == known


def test_a_magic_task_has_the_ends_of_its_intervals_beside_its_numbers(tmp_path):
    result, _ = magic_run(tmp_path)
    values = {name: one for name, one in values_of(result).items() if "_low" not in name and "_high" not in name}
    made = with_ends(values, [result])
    known = {name: one for name, one in result.measures.items() if f"{name},{result.filter}" in values}
    assert len([one for one in known.values() if one.low is not None]) >= 3
    for name, one in known.items():
        assert (made[f"{name}_low,{result.filter}"], made[f"{name}_high,{result.filter}"]) == (one.low, one.high)
