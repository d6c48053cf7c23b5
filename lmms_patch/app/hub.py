"""Pushing a folder to a dataset repository of the Hugging Face hub, as one commit.

Nothing is sent before ``push``; ``check`` only asks who we are and what is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.text import line

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MARK = "published.json"
"""The file by which our own repositories and folders are known."""
_CLIENTS = ("httpx", "httpcore", "requests", "urllib3")
"""Libraries that huggingface_hub sends with: their errors are of the network."""
_MADE_BY_THE_HUB = {".gitattributes"}


@dataclass(frozen=True)
class Pushed:
    """A folder on the hub.

    Attributes:
        repository: ``owner/name``.
        url: the address of the commit.
        private: whether only its owner sees it.
    """

    repository: str
    url: str
    private: bool


def check(repository: str, public: bool) -> str:
    """Check before any work whether a push could succeed, and return the repository as ``owner/name``.

    Args:
        repository: ``owner/name``, or a name under the token's own user.
        public: whether everybody may see it.

    Raises:
        OptionError: no name of a repository; or one that exists is of other visibility, or holds something else.
        PatchError: no token, a token that the hub refuses, or no connection.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HFValidationError

    # huggingface_hub.utils has it too, and names no exports.
    from huggingface_hub.utils._validators import (
        validate_repo_id,
    )

    try:
        validate_repo_id(repository)
    except HFValidationError:
        raise OptionError(
            f"--push {line(repository, 100)}: no name of a repository; write OWNER/NAME, of letters, digits, '-', '_' and '.': me/gqa_pruned"
        ) from None
    if constants.HF_HUB_OFFLINE:
        raise PatchError("--push: HF_HUB_OFFLINE is set, so nothing can be sent; unset it, or leave --push out")
    api = HfApi()
    with _told(repository, "nothing was sent"):
        name = repository if "/" in repository else f"{api.whoami()['name']}/{repository}"
        if "/" in repository:
            # Asked for its error alone: a bad token must show before the work, not after.
            api.whoami()
        _check_existing(api, name, public)
    return name


def push(folder: Path, repository: str, public: bool, message: str) -> Pushed:
    """Replace the files of a dataset repository by the files of a folder in a single commit; make a missing repository.

    Args:
        folder: what is sent.
        repository: ``owner/name``, as ``check`` returned it.
        public: whether everybody may see it. A repository that exists keeps its visibility, which must be this one.
        message: of the commit.

    Raises:
        PatchError: see ``check``. The commit is all or nothing, so the same call may be repeated.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with (
        _without_bars(),
        _told(repository, f"the hub did not confirm the commit; {folder} is whole, and the same command tries again"),
    ):
        # Once more: the repository may have changed while the pruning ran.
        _check_existing(api, repository, public)
        api.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        # files of an earlier push that the folder lacks must go, or loading would find docs of both
        done = api.upload_folder(
            repo_id=repository, folder_path=folder, repo_type="dataset", commit_message=message, delete_patterns="*"
        )
    return Pushed(repository, str(done.commit_url), not public)


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """Show no bars of huggingface_hub."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()


def _check_existing(api: HfApi, repository: str, public: bool) -> None:
    """Refuse a repository with different visibility, or with files from elsewhere than an earlier push."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        there: Any = api.dataset_info(repository)
    except RepositoryNotFoundError as error:
        # A refused token gives 401 for every name, so the repository may well exist.
        if _status(error) == 401:
            raise
        return
    if bool(there.private) and public:
        raise OptionError(
            f"--public: {repository} exists and is private; open it in its settings on the hub first, leave --public out, or give another --push"
        )
    if not there.private and not public:
        raise OptionError(
            f"--push {repository}: it exists and everybody can see it; type --public if they may see this too, or give another --push"
        )
    held = {one.rfilename for one in there.siblings or ()} - _MADE_BY_THE_HUB
    # Files that no push of ours made would be deleted by ``delete_patterns``.
    if held and MARK not in held:
        raise OptionError(
            f"--push {repository}: it holds other files ({line(min(held), 80)}, and no {MARK}), which would be lost; give another --push"
        )


def _status(error: Any) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


@contextlib.contextmanager
def _told(repository: str, state: str) -> Iterator[None]:
    """Raise PatchError, in one line, for an error of the hub or the network.

    Args:
        repository: as the user named it.
        state: what that means for what was to be sent.

    Raises:
        PatchError: what happened, and what to type.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    where = f"--push {repository}"
    try:
        yield
    except LocalTokenNotFoundError:
        raise PatchError(
            f"{where}: no token of the hub is known; type 'hf auth login', or set HF_TOKEN; {state}"
        ) from None
    except HfHubHTTPError as error:
        status = _status(error)
        if status == 401:
            raise PatchError(
                f"{where}: the hub does not take the token; type 'hf auth login' with one that may write, or set HF_TOKEN; {state}"
            ) from None
        if status == 403:
            raise PatchError(
                f"{where}: the token may not write there; use a token with the right to write, or another owner; {state}"
            ) from None
        told = line(getattr(error, "server_message", None) or error, 300)
        raise PatchError(f"{where}: the hub answered {status or 'with an error'}: {told}; {state}") from None
    except Exception as error:
        # A bug is no error of the network: it must not be hidden in one line.
        if not isinstance(error, OSError) and not type(error).__module__.startswith(_CLIENTS):
            raise
        raise PatchError(
            f"{where}: the connection failed ({type(error).__name__}: {line(error, 200)}); {state}"
        ) from None
