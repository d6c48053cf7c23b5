"""Pushing a folder: what the library of the hub is asked, and what its errors become."""

import httpx
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
from huggingface_hub.utils import filter_repo_objects

from lmms_patch.app import hub
from lmms_patch.errors import PatchError


class RefusedError(HfHubHTTPError):
    """What the library raises where the hub answers with an error."""

    def __init__(self, message):
        Exception.__init__(self, message)
        self.server_message = message


@pytest.fixture
def asked(monkeypatch):
    """What the library was asked, and by the name of a method what it raises once."""
    calls, fails = [], {}

    def method(name):
        def call(self, *given, **named):
            if error := fails.pop(name, None):
                raise error
            calls.append((name, given, named))
            return type("Commit", (), {"commit_url": "https://hub/datasets/me/toy/commit/1"})

        return call

    for name in ("whoami", "create_repo", "upload_folder"):
        monkeypatch.setattr(HfApi, name, method(name))
    return calls, fails


def test_a_folder_becomes_one_commit_of_a_private_repository(asked, tmp_path):
    calls, _ = asked
    hub.check("me/toy")
    assert [name for name, _, _ in calls] == ["whoami"], "asking makes nothing"
    assert hub.push(tmp_path, "me/toy", "first") == "https://hub/datasets/me/toy/commit/1"
    (_, given, made), (_, _, sent) = calls[1:]
    # of a repository that exists nothing is changed: the library leaves it as open as it is
    assert (given, made) == (("me/toy",), {"repo_type": "dataset", "private": True, "exist_ok": True})
    assert (sent["folder_path"], sent["repo_id"], sent["commit_message"]) == (tmp_path, "me/toy", "first")
    files = ["README.md", "pruned.json", "task/toy_pruned.yaml", "history.json", "judge.json"]
    assert list(filter_repo_objects(files, ignore_patterns=sent["ignore_patterns"])) == files[:3]


@pytest.mark.parametrize("name", ["a/b/c", "-toy", "me/to y", "", "me/a--b"])
def test_a_malformed_name_asks_nobody(asked, name):
    with pytest.raises(PatchError, match="no name of a repository; write OWNER/NAME"):
        hub.check(name)
    assert asked[0] == []


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (LocalTokenNotFoundError("x"), "no token of the hub is known; type 'hf auth login', or set HF_TOKEN"),
        (RefusedError("Invalid user token\nx"), r"the hub answered: Invalid user token"),
        (httpx.ConnectError("refused\nx"), "the connection failed: refused"),
        (OSError("HF_HUB_OFFLINE"), "the connection failed: HF_HUB_OFFLINE"),
    ],
)
@pytest.mark.parametrize("where", ["whoami", "create_repo", "upload_folder"])
def test_what_the_hub_and_the_network_refuse_is_one_line_and_the_same_call_ends_it(asked, tmp_path, error, says, where):
    calls, fails = asked
    fails[where] = error
    call = (lambda: hub.check("me/toy")) if where == "whoami" else (lambda: hub.push(tmp_path, "me/toy", "x"))
    with pytest.raises(PatchError, match=f"^--push me/toy: {says}") as refused:
        call()
    assert "\n" not in str(refused.value)
    assert "upload_folder" not in [name for name, _, _ in calls]
    call()


def test_an_error_of_ours_is_not_hidden(asked, tmp_path):
    asked[1]["create_repo"] = KeyError("x")
    with pytest.raises(KeyError):
        hub.push(tmp_path, "me/toy", "x")


def test_offline_is_a_failed_connection():
    """The library itself refuses, since tests are offline."""
    with pytest.raises(PatchError, match=r"HF_HUB_OFFLINE|no token"):
        hub.check("me/toy")
