"""Pushing a folder, against a hub on loopback."""

# ruff: noqa: F401, F811 - a fixture is imported
import pytest
from huggingface_hub import constants

from lmms_patch.app import hub as pushing
from lmms_patch.errors import OptionError, PatchError
from tests.making.hub import TOKEN, hub


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "made"
    (out / "data").mkdir(parents=True)
    for name, content in (
        ("README.md", "---\nlicense: mit\n---\n# x\n"),
        ("published.json", "{}"),
        ("data/test.parquet", "PAR1"),
    ):
        (out / name).write_text(content)
    return out


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """The library waits between its tries."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_becomes_one_commit_of_a_private_repository(hub, folder):
    assert pushing.check("toy", public=False) == "me/toy"
    assert hub.repos == {}, "asking makes nothing"
    done = pushing.push(folder, "me/toy", public=False, message="first")
    assert (done.repository, done.private, done.url) == ("me/toy", True, f"{hub.url}/datasets/me/toy/commit/{1:040x}")
    assert hub.commits == 1
    assert hub.repos["me/toy"] == {"private": True, "files": {".gitattributes": b"", **files_of(folder)}}


def test_a_second_push_replaces_what_the_first_one_left(hub, folder):
    pushing.push(folder, "me/toy", public=True, message="first")
    (folder / "data" / "test.parquet").unlink()
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# other\n")
    pushing.push(folder, pushing.check("me/toy", public=True), public=True, message="second")
    assert hub.commits == 2
    assert hub.repos["me/toy"] == {"private": False, "files": {".gitattributes": b"", **files_of(folder)}}


@pytest.mark.parametrize("name", ["a/b/c", "datasets/me/toy", "-toy", "me/to y", "", "x" * 97, "me/a--b", "me/toy.git"])
def test_a_malformed_name_asks_nobody(hub, name):
    with pytest.raises(OptionError, match="no name of a repository; write OWNER/NAME"):
        pushing.check(name, public=False)
    assert hub.seen == []


@pytest.mark.parametrize(
    ("token", "says"),
    [("hf_wrong", "the hub does not take the token; type 'hf auth login'"), (None, "no token of the hub is known")],
)
def test_without_a_good_token_nothing_is_sent(hub, folder, monkeypatch, token, says):
    monkeypatch.delenv("HF_TOKEN") if token is None else monkeypatch.setenv("HF_TOKEN", token)
    pushes = (
        (lambda: pushing.check("me/toy", public=False), says),
        (lambda: pushing.push(folder, "me/toy", public=False, message="x"), "the token"),
    )
    for call, told in pushes:
        with pytest.raises(PatchError, match=told) as refused:
            call()
        assert "\n" not in str(refused.value)
        assert TOKEN not in str(refused.value)
        assert "hf_wrong" not in str(refused.value)
    assert hub.repos == {}


def test_offline_is_said_before_anything_is_tried(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PatchError, match="HF_HUB_OFFLINE is set"):
        pushing.check("me/toy", public=False)


@pytest.mark.parametrize(
    ("private", "held", "public", "says"),
    [
        (True, {"published.json": b""}, True, "exists and is private; open it in its settings"),
        (False, {"published.json": b""}, False, "everybody can see it; type --public"),
        (
            True,
            {"thesis.tex": b""},
            False,
            "it holds other files .thesis.tex, and no published.json., which would be lost",
        ),
        (False, {"README.md": b""}, True, "it holds other files"),
    ],
)
def test_what_exists_is_neither_opened_nor_lost(hub, folder, private, held, public, says):
    hub.repos["me/toy"] = {"private": private, "files": dict(held)}
    for call in (lambda: pushing.check("me/toy", public), lambda: pushing.push(folder, "me/toy", public, "x")):
        with pytest.raises(OptionError, match=says):
            call()
    assert hub.repos["me/toy"] == {"private": private, "files": held}


def test_an_empty_repository_of_the_same_visibility_is_filled(hub, folder):
    hub.repos["me/toy"] = {"private": True, "files": {".gitattributes": b""}}
    pushing.push(folder, "me/toy", public=False, message="x")
    assert set(hub.repos["me/toy"]["files"]) == {".gitattributes", *files_of(folder)}


@pytest.mark.parametrize("dies_at", ["/repos/create", "/preupload/", "/commit/"])
def test_where_the_network_goes_nothing_is_half_there_and_the_same_call_ends_it(hub, folder, dies_at):
    hub.dies_at = dies_at
    with pytest.raises(
        PatchError,
        match=r"--push me/toy: the connection failed .*; the hub did not confirm the commit; .* is whole, and the same command",
    ) as failed:
        pushing.push(folder, "me/toy", public=False, message="x")
    assert "\n" not in str(failed.value)
    assert hub.commits == 0
    assert hub.repos.get("me/toy", {"files": {".gitattributes": b""}})["files"] == {".gitattributes": b""}
    hub.dies_at = None
    pushing.push(folder, "me/toy", public=False, message="x")
    assert (hub.commits, hub.repos["me/toy"]["files"]) == (1, {".gitattributes": b"", **files_of(folder)})


def test_no_hub_at_all_is_one_line(hub):
    hub.close()
    with pytest.raises(PatchError, match=r"--push me/toy: the connection failed .*; nothing was sent"):
        pushing.check("me/toy", public=False)


@pytest.mark.parametrize(
    ("part", "answer", "says"),
    [
        ("/repos/create", (403, "Forbidden"), "the token may not write there"),
        ("/commit/", (403, "Forbidden"), "the token may not write there"),
        ("/commit/", (400, "eval.yaml: unknown framework"), "the hub answered 400: .*eval.yaml: unknown framework"),
    ],
)
def test_what_the_hub_refuses_it_says_why(hub, folder, part, answer, says):
    hub.refuses = {part: answer}
    with pytest.raises(PatchError, match=says):
        pushing.push(folder, "me/toy", public=False, message="x")
    assert hub.commits == 0
