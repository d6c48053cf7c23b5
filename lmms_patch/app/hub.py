"""``lmms-patch prune --push``: a pruning's folder as a dataset repository of the Hugging Face hub."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lmms_patch.errors import PatchError
from lmms_patch.text import line

STATES = ["history.json", "judge.json"]
"""Files of a pruning that only let it go on after a kill: they are not sent."""


def check(repository: str) -> None:
    """Check before any work that the hub takes a token.

    Raises:
        PatchError: no name of a repository, no token, a token that the hub refuses, or no connection.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils._validators import validate_repo_id

    with _told(repository):
        validate_repo_id(repository)
        HfApi().whoami()


def push(folder: Path, repository: str, message: str) -> str:
    """Send a folder in a single commit, and return the commit's address; a repository that is missing is made, and is private.

    Raises:
        PatchError: the hub or the network does not take it; the folder is whole, and the same call may be repeated.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with _told(repository):
        api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository, folder_path=folder, repo_type="dataset", commit_message=message, ignore_patterns=STATES
        )
    return str(done.commit_url)


@contextlib.contextmanager
def _told(repository: str) -> Iterator[None]:
    """Turn an error of the hub or the network into a line.

    Raises:
        PatchError: in place of that error.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    where = f"--push {line(repository, 100)}"
    try:
        yield
    except HFValidationError:
        raise PatchError(f"{where}: no name of a repository; write OWNER/NAME, such as me/gqa_pruned") from None
    except LocalTokenNotFoundError:
        raise PatchError(f"{where}: no token of the hub is known; type 'hf auth login', or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        raise PatchError(f"{where}: the hub answered: {line(error.server_message or error, 300)}") from None
    except Exception as error:
        # huggingface_hub sends with one of these; any further error would be a bug, which must not be hidden in a line
        if not isinstance(error, OSError) and not type(error).__module__.startswith(("httpx", "requests")):
            raise
        raise PatchError(f"{where}: the connection failed: {line(error, 200)}") from None
