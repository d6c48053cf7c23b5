"""A pruned benchmark as a dataset that others load: ``lmms-patch prune --to``, with ``datasets`` and in the harness itself."""

# ruff: noqa: F401, F811 - fixtures are imported
import json
import shutil

import datasets
import pytest
import yaml
from huggingface_hub import DatasetCard

from lmms_patch.app.cli import main
from lmms_patch.harness.tst import published
from lmms_patch.present import card as card_page
from lmms_patch.runs.typed import read_as
from lmms_patch.tst.formats import PublishedJson
from tests.harness import toys
from tests.harness.tst.pruning import DOCS, command, ids, knows, pruned, refused, see, tasks
from tests.making.hub import hub

COPY = ("--copy", "--license", "cc-by-4.0")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = [row["question"] for row in DOCS]


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """Write a toy task whose dataset seems to lie on the hub, with a split ``val`` and a commit.

    Returns the folder of the task file, and a list of what was loaded.
    """
    folder = toys.write_task(
        tmp_path / "remote", "toy", DOCS, metadata={"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    )
    data = shutil.move(folder / "toy.parquet", tmp_path / "hidden.parquet")
    config = yaml.safe_load((folder / "toy.yaml").read_text())
    config = {**config, "dataset_path": "someone/toy", "test_split": "val"}
    del config["dataset_kwargs"]
    (folder / "toy.yaml").write_text(yaml.safe_dump(config))
    asked = []
    own = datasets.load_dataset

    def load_dataset(path=None, name=None, split=None, revision=None, **more):
        if path != "someone/toy":
            return own(path, name, split=split, **more)
        asked.append(revision)
        found = datasets.Dataset.from_parquet(str(data), split="val")
        found.info.download_checksums = {
            f"hf://datasets/someone/toy@{COMMIT}/data/val.parquet": {"num_bytes": 1, "checksum": None}
        }
        found.info.citation = "@misc{toy, title={A ``` toy}}"
        return found if split else datasets.DatasetDict({"val": found})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return folder, asked


def asked_in_the_harness(folder):
    found = toys.run(toys.Model(see), "toy_pruned", folder)
    return found["samples"]["toy_pruned"], toys.metrics(found, "toy_pruned")["exact_match"]


def head_of(folder):
    return DatasetCard.load(folder / "README.md")


def test_a_copy_is_exactly_the_kept_docs_for_datasets_and_for_the_harness(tasks, tmp_path, knows, capsys):
    made = tmp_path / "made"
    assert command(tasks, tmp_path / "out", "--budget", "30", "--to", made, *COPY) == 0
    assert f"the dataset for others: {made}" in capsys.readouterr().out
    made = shutil.move(made, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "out" / "task")
    kept = [one["key"] for one in json.loads((made / "pruning" / "pruned.json").read_text())["kept"]]
    assert len(kept) == 90
    assert kept == ids(tmp_path / "out", "kept")
    docs = datasets.load_dataset(str(made), cache_dir=str(tmp_path / "cache"))
    assert list(docs) == ["test"]
    assert docs["test"]["name"] == kept
    numbers = [int(key.removeprefix("doc-")) for key in kept]
    assert [image.tobytes() for image in docs["test"]["image"]] == [DOCS[i]["image"].tobytes() for i in numbers]
    assert docs["test"].column_names == list(DOCS[0])
    samples, accuracy = asked_in_the_harness(made)
    assert [sample["doc"]["name"] for sample in samples] == kept
    assert accuracy == pytest.approx(sum(i % 10 != 0 for i in numbers) / 90)
    about = read_as(json.loads((made / "published.json").read_text()), PublishedJson)
    assert (about.form, about.docs, about.kept, about.task, about.original.repository) == (
        "copy",
        120,
        90,
        "toy_pruned",
        "",
    )
    card = head_of(made)
    assert card.data.license == "cc-by-4.0"
    assert card.data.size_categories == "n<1K"
    sizes = {999: "n<1K", 1000: "1K<n<10K", 99_999: "10K<n<100K", 10**6: "1M<n<10M", 10**7: "n>10M"}
    assert {count: card_page._size(count) for count in sizes} == sizes
    assert card.data.configs == [
        {"config_name": "default", "data_files": [{"split": "test", "path": "data/test.parquet"}]}
    ]
    assert yaml.safe_load((made / "eval.yaml").read_text())["tasks"] == [
        {"id": "toy_pruned", "config": "default", "split": "test"}
    ]


def test_a_filter_holds_no_content_and_selects_the_kept_docs(remote, tmp_path, knows):
    folder, asked = remote
    made = tmp_path / "made"
    assert command(folder, tmp_path / "out", "--budget", "30", "--to", made) == 0
    kept = ids(tmp_path / "out", "kept")
    for path in made.rglob("*"):
        if path.is_file():
            assert not any(text.encode() in path.read_bytes() for text in TEXTS), path
            assert b"\x89PNG" not in path.read_bytes(), path
    listed = datasets.load_dataset(str(made), split="val", cache_dir=str(tmp_path / "cache"))
    assert listed["key"] == kept
    assert listed.column_names == ["key", "row"]
    # what the card says to type
    code = (
        (made / "README.md")
        .read_text()
        .split("```python\n")[1]
        .split("```")[0]
        .replace('"REPOSITORY"', repr(str(made)))
    )
    world = {}
    exec(code, world)
    assert world["docs"]["name"] == kept
    asked.clear()
    samples, _ = asked_in_the_harness(made)
    assert [sample["doc"]["name"] for sample in samples] == kept
    assert set(asked) == {COMMIT}, "the task loads the commit that was pruned"
    card = head_of(made)
    assert card.data.source_datasets == ["someone/toy"]
    assert card.data.license is None
    assert card.content.count("```") % 2 == 0
    assert "@misc{toy" in card.content


def test_the_card_tells_rule_numbers_and_limits(tasks, tmp_path, knows):
    made = tmp_path / "made"
    assert command(tasks, tmp_path / "out", "--budget", "30", "--shuffles", "1", "--to", made, *COPY) == 0
    text, found = (made / "README.md").read_text(), pruned(tmp_path / "out")
    judged = found["judged"]
    assert f"verdict: **{judged['verdict']}**" in text
    for one in judged["compared"]:
        row = next(
            line
            for line in text.splitlines()
            if f"| {one['fall']:+.3f} |".replace("-", r"\-") in line or f"| {one['fall']:+.3f} |" in line
        )
        assert f"{judged['original']:.3f}" in row
        assert f"{judged['kept']:.3f}" in row
    assert "| planted | 40 | 30 | 75.0 % | 10 |" in text
    assert "**No reduction of shortcuts is shown.**" in text
    assert "https://arxiv.org/abs/2511.04655" in text
    assert str(tmp_path) not in text


def test_a_filter_over_files_of_this_machine_is_refused_before_any_work(tasks, tmp_path, knows, capsys):
    assert command(tasks, tmp_path / "out", "--to", tmp_path / "made") == 2
    assert "toy reads files of this machine, which others do not have" in refused(capsys)
    assert knows.docs == []
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--copy", "--license", "mit"), "--copy is about the dataset of --to or --push; type --to DIR too"),
        (("--public",), "--public is about the dataset of --to or --push"),
        (("--to", "MADE", "--copy"), "--copy gives the docs on, so it needs their licence; type --license"),
        (("--to", "MADE", *COPY, "--public"), "type --push OWNER/NAME too"),
        (("--to", "OUT", *COPY), "the pruning itself is written to"),
        (("--to", "TAKEN", *COPY), "this folder has other files in it"),
        (("--push", "me/toy", *COPY), "HF_HUB_OFFLINE is set"),
    ],
)
def test_options_that_do_not_fit_are_one_line_before_any_work(
    tasks, tmp_path, knows, monkeypatch, capsys, arguments, says
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("x")
    places = {"MADE": tmp_path / "made", "OUT": tmp_path / "out", "TAKEN": tmp_path / "taken"}
    assert command(tasks, tmp_path / "out", *(places.get(word, word) for word in arguments)) == 2
    assert says in refused(capsys)
    assert knows.docs == []
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_docs_that_only_name_their_images_are_not_copied(tmp_path, knows, capsys):
    """The pictures lie elsewhere: a copy would be a benchmark without them.

    So is said before any work, and neither form sends the user to the other.
    """
    rows = [{k: v for k, v in row.items() if k != "image"} | {"picture": f"{i}.png"} for i, row in enumerate(DOCS)]
    toys.write_task(
        tmp_path / "tasks", "toy", rows, metadata={"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    )
    for form in (COPY, ()):
        assert command(tmp_path / "tasks", tmp_path / "out", "--budget", "30", "--to", tmp_path / "made", *form) == 2
        line = refused(capsys)
        assert (
            "the docs only name their images or videos, which a copy would lack; nothing can be published of it as it is"
            in line
        )
        assert "--copy" not in line
    assert knows.docs == []
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def test_a_copy_of_docs_on_the_hub_that_only_name_their_images_is_a_filter(
    remote, tmp_path, knows, monkeypatch, capsys
):
    """Others have the original, so the list of ids is of use."""
    folder, _ = remote
    monkeypatch.setattr(published.pruned_filter, "is_media_feature", lambda feature: False)
    assert command(folder, tmp_path / "out", "--budget", "30", "--to", tmp_path / "made", *COPY) == 2
    assert refused(capsys).endswith("which a copy would lack; leave --copy out")
    assert knows.docs == []


def test_a_task_that_could_not_be_written_is_refused_before_any_work(tmp_path, knows, capsys):
    """``process_docs`` draws at random, so ids of the docs that are kept would be of no use."""
    (tmp_path / "tasks").mkdir()
    code = "import os\ndef drawn(rows):\n    return rows.add_column('drawn', [os.urandom(8).hex() for _ in range(len(rows))])\n"
    (tmp_path / "tasks" / "utils.py").write_text(code)
    inline = {"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    toys.write_task(tmp_path / "tasks", "toy", DOCS, metadata=inline, process_docs="!function utils.drawn")
    assert command(tmp_path / "tasks", tmp_path / "out", "--budget", "30", "--key", "drawn") == 2
    assert "are not those of its docs" in refused(capsys)
    assert knows.docs == []


def test_the_verdict_is_printed_before_a_dataset_is_written(tasks, tmp_path, knows, monkeypatch, capsys):
    def full(*words, **more):
        assert "120 docs removed" in capsys.readouterr().out, "the verdict stands there"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(published, "write", full)
    assert command(tasks, tmp_path / "out", "--budget", "30", "--to", tmp_path / "made", *COPY) != 0
    assert len(pruned(tmp_path / "out")["removed"]) == 30


def test_process_docs_and_few_shot_docs_of_a_copy(tmp_path):
    """The base keeps odd numbers and counts them anew: the copy has what it gave, and does not do so twice.

    The few-shot docs stay whole.
    """
    folder = tmp_path / "mine"
    code = "def odd(rows):\n    return rows.filter(lambda row: row['number'] % 2).map(lambda row: {'number': row['number'] // 2})\n"
    folder.mkdir()
    (folder / "utils.py").write_text(code)
    toys.write_task(folder, "shots", toys.rows(6, number=lambda i: i))
    (folder / "shots.yaml").unlink()
    files = {"data_files": {"test": "toy.parquet", "train": "shots.parquet"}}
    rows = toys.rows(16, number=lambda i: i)
    toys.write_task(
        folder, "toy", rows, process_docs="!function utils.odd", fewshot_split="train", dataset_kwargs=files
    )
    written = published.write(
        "toy", ["1", "3", "6"], tmp_path / "made", copy=True, include_path=str(folder), key="number"
    )
    shutil.rmtree(folder)
    assert written.splits == {"test": "data/test.parquet", "train": "data/train.parquet"}
    found = toys.run(toys.Model(), "toy_pruned", tmp_path / "made")
    assert [(sample["doc"]["number"], sample["doc"]["answer"]) for sample in found["samples"]["toy_pruned"]] == [
        (1, "3"),
        (3, "7"),
        (6, "13"),
    ]
    assert not list((tmp_path / "made").rglob("base*/*.parquet")), "no removed doc is left in the folder"
    shots = datasets.Dataset.from_parquet(str(tmp_path / "made" / "data" / "train.parquet"))
    assert shots["number"] == [0, 1, 2]


def test_a_second_dataset_takes_the_place_of_the_first(tasks, tmp_path, knows):
    made = tmp_path / "made"
    assert command(tasks, tmp_path / "out", "--budget", "30", "--to", made, *COPY) == 0
    assert command(tasks, tmp_path / "other", "--budget", "20", "--to", made, *COPY) == 0
    assert len(datasets.Dataset.from_parquet(str(made / "data" / "test.parquet"))) == 100
    assert json.loads((made / "published.json").read_text())["kept"] == 100


def test_where_nothing_was_removed_nothing_is_published(tmp_path, knows, capsys):
    rows = [{**row, "answer": ""} for row in DOCS]
    toys.write_task(
        tmp_path / "tasks", "toy", rows, metadata={"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    )
    command(tmp_path / "tasks", tmp_path / "out", "--tau", "5", "--to", tmp_path / "made", *COPY)
    assert not (tmp_path / "made").exists()
    refused(capsys)


def test_a_pushed_dataset_is_the_folder(tasks, tmp_path, knows, hub, capsys):
    assert command(tasks, tmp_path / "out", "--budget", "30", "--push", "toy", *COPY) == 0
    made = tmp_path / "out" / "dataset"
    held = {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert hub.repos == {"me/toy": {"private": True, "files": {".gitattributes": b"", **held}}}
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == f"on the hub: me/toy (private), {hub.url}/datasets/me/toy/commit/{1:040x}"
    )


def test_a_wrong_token_is_told_before_the_work(tasks, tmp_path, knows, hub, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert command(tasks, tmp_path / "out", "--push", "me/toy", *COPY) == 2
    assert "the hub does not take the token" in refused(capsys)
    assert knows.docs == []
