"""The explorer as a server of its own: what the browser is given."""

import re
import stat
import threading
import urllib.parse
from pathlib import Path

import uvicorn

from lmms_patch.app import serving
from lmms_patch.present.explore.explorer import Explorer
from lmms_patch.present.explore.pictures import Pictures


def test_the_browser_is_given_a_file_that_only_the_user_can_read(monkeypatch, capsys):
    """The command line of a browser can be read by everyone on the machine (``ps``), so it must not hold the token."""
    opened, given = threading.Event(), []

    def opens(address):
        path = Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path))
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)]
        given.append((address, path, path.read_text(), modes))
        opened.set()

    monkeypatch.setattr(serving.webbrowser, "open", opens)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: opened.wait(10))
    serving.serve(Explorer([], [], ""), Pictures(None))
    [(address, path, text, modes)] = given
    said = capsys.readouterr().out.split()[0]
    token = re.search(r"token=([\w-]{40,})$", said)[1]
    assert address.startswith("file:")
    assert token not in address
    assert f'url={said}"' in text
    assert modes == [0o600, 0o700]
    assert not path.exists()
