"""A run of 100,000 docs (20,000 in ``make test``) with ten views each, in a server of its own."""

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from tests.making.explored import kind_of
from tests.places import ROOT
from tests.sizes import size

DOCS = size(20_000, 100_000)


def test_many_docs_are_found_in_little_memory(tmp_path, pages):
    script = f"from pathlib import Path; from tests.making.explored import serve_many; serve_many(Path({str(tmp_path)!r}), {DOCS})"
    started = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        address = started.stdout.readline().split()[0]
        page = pages.open(address)
        expect(count := page.locator("#count")).to_have_text(f"{DOCS:,} of {DOCS:,} docs", timeout=300_000)
        kinds = [kind_of(doc) for doc in range(DOCS)]
        page.locator("#needs button", has_text="whole image").click()
        expect(count).to_have_text(f"{kinds.count('whole image'):,} of {DOCS:,} docs")
        page.locator("#needs button", has_text="whole image").click()
        page.locator("#q").fill(f"picture {4242 * 7919 % 1000003} of")
        expect(count).to_have_text(f"1 of {DOCS:,} docs")
        page.locator("#q").fill("")
        expect(count).to_have_text(f"{DOCS:,} of {DOCS:,} docs")
        page.locator("#list").focus()
        page.keyboard.press("End")
        expect(page.locator("#doc h2")).to_have_text(f"Doc {DOCS - 1}")
        expect(page.locator("#list")).to_contain_text(f"picture {(DOCS - 1) * 7919 % 1000003}")
        [most] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{started.pid}/status").read_text())
        assert int(most) / 1e6 < 1.5
    finally:
        pages.close()
        started.send_signal(2)
        assert started.wait(20) == 0
    assert started.stdout.read() == ""
