"""Standard errors as columns of the host's results."""

import json

from lmms_patch.runs.columns import with_errors
from lmms_patch.runs.run import find
from tests.making.magic import doc, write_magic_run
from tests.making.runs import mc_run, write_run

ENDS = ("", "_stderr", "_stderr_clt", "_stderr_clustered")


def values_of(result):
    """The columns of a task with the harness's three columns of standard errors beside each."""
    values = json.loads(result.run.path.read_text())["results"][result.task]
    return {key.replace(",", f"{end},"): value if not end else "N/A" for key, value in values.items() for end in ENDS}


def test_a_wrapped_task_keeps_the_columns_of_the_native_metric(tmp_path):
    [result] = find([write_run(tmp_path, {"toy_rci2": mc_run(60)})])[0].results
    values = values_of(result)
    values["acc_stderr_clt,none"] = values["acc_stderr,none"] = 0.5  # as the harness computed them
    made = with_errors(values, [result])
    assert [made.get(f"acc{end},none") for end in ENDS[1:]] == [0.5, 0.5, None]
    assert made["gap2_stderr,none"] == result.measures["gap2"].se > 0
    assert "N/A" not in made.values()
    assert made["n_docs,none"] == 60


def test_a_standard_error_of_other_docs_is_not_put_beside_a_number(tmp_path):
    """Where calls failed, the harness's own number is of all docs, and ours of those that were answered."""
    [result] = find([write_run(tmp_path, {"toy_rci2": mc_run(60)})])[0].results
    result.native.values["acc"] -= 0.01
    values = values_of(result)
    made = with_errors(values | {"acc,none": values["acc,none"] - 0.01}, [result])
    assert "acc_stderr,none" not in made
    assert made["gap2_stderr,none"] > 0


def test_all_metrics_of_a_magic_task_are_ours(tmp_path):
    said = ["I see R1.\n\nIt is a dog.\n\nAnswer: dog", "R2 is a cat.\n\nSo it is a cat.\n\nAnswer: cat"] * 15
    write_magic_run(tmp_path, {"all": [doc(f"q{n}", text) for n, text in enumerate(said)]})
    [result] = find([tmp_path])[0].results
    made = with_errors(values_of(result), [result])
    assert "N/A" not in made.values()
    known = {
        name: one.se
        for name, one in result.measures.items()
        if one.se is not None and f"{name},{result.filter}" in made
    }
    assert known
    assert {name: made[f"{name}_stderr,{result.filter}"] for name in known} == known
