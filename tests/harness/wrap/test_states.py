"""What an answer can be (docs/metrics.md): a scorer without a value, and answers that the token limit cut, beside whole and failed ones."""

import pytest
from lmms_eval.api.instance import GenerationResult, TokenCounts

from lmms_patch.app.cli import main
from lmms_patch.runs.run import find
from tests.harness.askers import written
from tests.harness.toys import Model, metrics, rows, run, write_task


class Thinking(Model):
    """Cuts what it thinks of the full image of every third doc.

    It says how many tokens an answer has, or leaves the tag open.
    """

    def __init__(self, tells, most=16):
        super().__init__()
        self.tells, self.most = tells, most

    def generate_until(self, requests):
        out = []
        super().generate_until(requests)
        for _, _, images, _ in self.seen[-len(requests) :]:
            doc = images[0].getpixel((0, 0))[2]
            cut = images[0].width == 60 and not doc % 3
            text = str(doc) if not cut else "the sheet shows" if self.tells else f"<think>{doc}"
            out.append(GenerationResult(text, TokenCounts(3, self.most if cut else 2)) if self.tells else text)
        return out


@pytest.mark.parametrize("tells", [True, False])
def test_answers_that_were_cut_are_counted_for_full_image_and_cells_apart(tmp_path, tells, capsys):
    write_task(tmp_path, "toy", rows(60), generation_kwargs={"max_new_tokens": 16})
    found = run(Thinking(tells), "toy_rci2", tmp_path)
    sentence = "answers cut by the token limit (--gen_kwargs max_new_tokens=N allows more): 20 of 60 to the first view, 0 of 240 to other"
    warned = metrics(found, "toy_rci2")["patch"]["analysis"]["warnings"]
    assert [line[: len(sentence)] for line in warned if "cut by" in line] == [sentence]
    cut = {
        (one["doc_id"], place)
        for one in found["samples"]["toy_rci2"]
        for place, view in enumerate(one["patch"]["views"])
        if view.get("unfinished")
    }
    assert cut == {(doc, 0) for doc in range(0, 60, 3)}
    folder = written(found, tmp_path / "written", "toy_rci2")
    assert main(["show", str(folder)]) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())
    frame = find([folder])[0].results[0].frame(["doc_id", "view", "unfinished"])
    assert set(frame.filter("unfinished").select("doc_id", "view").rows()) == cut


def test_an_answer_of_a_letter_at_its_limit_is_whole(tmp_path):
    write_task(tmp_path, "toy", rows(12), generation_kwargs={"max_new_tokens": 4})
    found = run(Thinking(True, most=4), "toy_rci2", tmp_path)
    assert not any(view.get("unfinished") for one in found["samples"]["toy_rci2"] for view in one["patch"]["views"])


def test_a_scorer_that_is_all_wrong_leaves_an_index_that_says_so(tmp_path):
    """An aggregation that is no mean of single items as far as anybody can see: every score is 0.

    The golds show that it tells docs apart.
    """
    (tmp_path / "utils.py").write_text("def corpus(items):\n    return sum(one['hit'] for one in items) / len(items)\n"
                                       "def score(doc, results):\n    return {'m': {'hit': float(results[0] == doc['answer'])}}\n")  # fmt: skip
    write_task(tmp_path, "toy", rows(40), process_results="!function utils.score",
               metric_list=[{"metric": "m", "aggregation": "!function utils.corpus", "higher_is_better": True}])  # fmt: skip
    found = metrics(run(Model(lambda prompt, images: "no"), "toy_rci2", tmp_path), "toy_rci2")
    assert found["m_mpp2"] == 0
    assert "FIP is 0" in found["patch"]["analysis"]["grids"]["2"]["index"]["reason"]
