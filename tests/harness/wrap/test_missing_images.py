"""Images that cannot be loaded, in the middle of a benchmark: the run goes on, the doc is left out and counted.

Through the real evaluator, in-process.
"""

import io

import datasets
import numpy as np
import pytest
from PIL import Image

from lmms_patch.errors import CannotWrapError
from tests.harness.toys import ChatModel, Model, coded_image, metrics, run, write_task

DOCS, BROKEN = 9, 5
GREY = (128, 128, 128)
UTILS = """
from PIL import Image

def opens(doc):
    return [Image.open(doc["path"]).convert("RGB")]

def path(doc):
    return [doc["path"]]

def column(doc):
    return [doc["image"].convert("RGB")]

def own_messages(doc):
    return [{"role": "user", "content": [{"type": "image", "url": Image.open(doc["path"])}, {"type": "text", "text": "own " + doc["question"]}]}]
"""


def png(doc):
    out = io.BytesIO()
    coded_image(doc).save(out, "PNG")
    return out.getvalue()


def damaged(how, doc):
    """The file of a doc: None where there is none."""
    return {"missing": None, "truncated": png(doc)[:20], "no image": b"<html>404 Not Found</html>", "empty": b""}[how]


def write(folder, shows, how, broken=(BROKEN,), **config):
    """A task of nine docs, whose images are files, or lie in its dataset; ``broken`` ones are damaged."""
    (folder / "utils.py").write_text(UTILS)
    files = {doc: damaged(how, doc) if doc in broken else png(doc) for doc in range(DOCS)}
    data = []
    for doc, content in files.items():
        place = folder / f"{doc}.png"
        if content is not None and shows != "column":
            place.write_bytes(content)
        own = {"image": {"bytes": content or b"", "path": None}} if shows == "column" else {"path": str(place)}
        data.append(
            {
                **own,
                "question": f"question {doc % 3}?",
                "answer": str(doc),
                "boxes": [[0, 0, 20, 20], [30, 30, 60, 60]],
                "relevant": [True, False],
            }
        )
    text = datasets.Value("string")
    features = {
        "question": text,
        "answer": text,
        "boxes": datasets.Sequence(datasets.Sequence(datasets.Value("int64"))),
    }
    features |= {
        "relevant": datasets.Sequence(datasets.Value("bool")),
        **({"image": datasets.Image()} if shows == "column" else {"path": text}),
    }
    show = {"doc_to_visual": "image"} if shows == "column" else {"doc_to_visual": f"!function utils.{shows}"}
    write_task(folder, "toy", data, features, **{**show, **config})


def decoded(image):
    return np.asarray((Image.open(image) if isinstance(image, str) else image).convert("RGB"))


def answer(prompt, images):
    """The whole image and its last quarter are answered rightly; a grey image, or none, with "x"."""
    pixels = decoded(images[0]) if images else np.full((1, 1, 3), 128)
    if tuple(pixels[0, 0]) == GREY:
        return "x"
    row, column, doc = (int(x) for x in pixels[0, 0])
    return str(doc) if len(pixels) == 60 or (row, column) == (30, 30) else "none"


@pytest.mark.parametrize("model", [Model, ChatModel])
@pytest.mark.parametrize(
    ("shows", "how"),
    [
        ("opens", "missing"),
        ("opens", "no image"),
        ("path", "missing"),
        ("path", "truncated"),
        ("path", "empty"),
        ("column", "no image"),
        ("column", "empty"),
    ],
)
def test_the_doc_is_left_out_and_counted(tmp_path, told, model, shows, how):
    """Of nine docs one is lost. The other eight are right in full and in one cell: FIP 8/8, MPP 8/8.

    The harness's own number counts.
    the lost doc, whose answer about a grey image is wrong: 8/9."""
    write(tmp_path, shows, how)
    asked = model(answer)
    result = run(asked, "toy_rci2", tmp_path)
    assert len(asked.seen) == DOCS * 5
    found, numbers = metrics(result, "toy_rci2"), result["results"]["toy_rci2"]["patch,none"]
    assert found["exact_match"] == pytest.approx(8 / 9)
    assert (found["exact_match_mpp2"], found["gap2"]) == (1.0, 0.0)
    assert (numbers["n_docs"], numbers["n_failed"], numbers["analysis"]["fip"]["value"]) == (8, 1, 1.0)
    record = result["samples"]["toy_rci2"][BROKEN]["patch"]
    assert list(record["excluded"]) == ["2"]
    assert "load" in record["excluded"]["2"] or "read" in record["excluded"]["2"]
    assert {view["failed"] for view in record["views"]} == {record["excluded"]["2"]}
    assert all(tuple(decoded(images[0])[0, 0]) == GREY for _, doc_id, images, _ in asked.seen if doc_id // 5 == BROKEN)
    assert any("1 of 9 docs" in line for line in told)


@pytest.mark.parametrize("name", ["toy_blank", "toy_shuffle2", "toy_occlude2", "toy_pcri2"])
def test_in_every_kind_that_shows_an_image(tmp_path, name):
    write(tmp_path, "opens", "missing")
    result = run(Model(answer), name, tmp_path)
    numbers = result["results"][name]["patch,none"]
    assert (numbers["n_docs"], numbers["n_failed"]) == (8, 1)
    assert all("failed" in view for view in result["samples"][name][BROKEN]["patch"]["views"])


def test_a_missing_image_is_nobodys_wrong_image(tmp_path):
    """Nine docs, one without its file: eight are asked on one another's images, none on that one's."""
    write(tmp_path, "opens", "missing", metadata={"version": 0.0})
    for name, views in (("toy_swap", 1), ("toy_rci2", 5 + 1)):
        model = Model(answer)
        result = run(model, name, tmp_path)
        records = [one["patch"] for one in result["samples"][name]]
        wrong = {record["doc_id"]: record["wrong_image"]["from"] for record in records if record.get("wrong_image")}
        assert BROKEN not in wrong.values()
        if name == "toy_rci2":
            assert set(wrong) == {*range(DOCS)} - {BROKEN}
        assert len(model.seen) == 8 * views + (1 if name == "toy_swap" else 5)
        failed = [record["doc_id"] for record in records if "failed" in record["views"][0]]
        assert failed == [BROKEN]
        assert "No such file" in records[BROKEN]["views"][0]["failed"]
        assert metrics(result, name)["exact_match"] is not None


def test_a_first_doc_without_its_file_does_not_end_the_run(tmp_path):
    write(tmp_path, "opens", "missing", broken=(0, 1))
    numbers = run(Model(answer), "toy_rci2", tmp_path)["results"]["toy_rci2"]["patch,none"]
    assert (numbers["n_docs"], numbers["n_failed"]) == (7, 2)


def test_a_folder_that_is_not_there_does(tmp_path):
    write(tmp_path, "opens", "missing", broken=range(DOCS))
    model = Model(answer)
    with pytest.raises(
        CannotWrapError, match=r"none of the 9 docs asked shows an image or a video \(doc 0: .*No such file"
    ) as caught:
        run(model, "toy_rci2", tmp_path)
    assert not model.seen
    assert "\n" not in str(caught.value)


def test_answers_about_the_grey_image_are_not_cached(tmp_path):
    """The file is put back: the same command asks the five views of this doc again, and no other."""
    write(tmp_path, "opens", "missing")
    model = Model(answer)
    cache = str(tmp_path / "cache")
    first = run(model, "toy_rci2", tmp_path, use_cache=cache)
    assert first["results"]["toy_rci2"]["patch,none"]["n_failed"] == 1
    (tmp_path / f"{BROKEN}.png").write_bytes(png(BROKEN))
    model.seen.clear()
    second = run(model, "toy_rci2", tmp_path, use_cache=cache)
    assert sorted(doc_id for _, doc_id, _, _ in model.seen) == [BROKEN * 5 + view for view in range(5)]
    numbers = second["results"]["toy_rci2"]["patch,none"]
    assert (numbers["n_docs"], numbers["n_failed"]) == (9, 0)
    assert metrics(second, "toy_rci2")["exact_match"] == 1.0
