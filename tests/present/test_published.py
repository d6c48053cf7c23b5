"""What the Hub is told of a result."""

from lmms_patch.present.published import eval_results
from lmms_patch.runs.run import read
from tests.making.runs import again_run, mc_run, write_run


def test_the_hub_is_told_which_index_it_holds(tmp_path):
    """Half of the docs need the whole image: the steady index is 0.5, and that of one pass is less."""
    made = {"a_rci2": again_run(["whole", "cell"], n=80, base="a"), "b_rci2": mc_run(n=80)}
    run = read(write_run(tmp_path, made))
    entries, _ = eval_results(run, run.results)
    told = {entry.task_id: (entry.value, entry.notes.split(", ")[0]) for entry in entries}
    measures = {result.task: result.measures for result in run.results}
    assert told["a_rci2"] == (measures["a_rci2"]["rci2_steady"].value, "rci2_steady of a_rci2")
    assert measures["a_rci2"]["rci2"].value != measures["a_rci2"]["rci2_steady"].value
    assert told["toy_rci2"] == (measures["b_rci2"]["rci2"].value, "rci2 of b_rci2")
