"""A test case for pages made by engine-inspect, what reads them, and how figures are spelt."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from browser import Browser, find_browser

# Every row of a grid, by its number, scrolled into sight bit by bit.
READ_GRID = """(async () => {
  const box = document.querySelector('.grid[aria-label="%s"]'), rows = [];
  const frame = () => new Promise(
    (done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (let top = 0; top <= box.scrollHeight; top += Math.max(30, box.clientHeight - 60)) {
    box.scrollTop = top;
    await frame();
    for (const row of box.querySelectorAll('.rows .row')) {
      rows[row.ariaRowIndex - 2] = [...row.children].map((cell) => ({
        text: cell.textContent, us: Number(cell.querySelector('[data-us]')?.dataset.us),
        title: cell.querySelector('[title]')?.title,
        changed: cell.querySelector('.changed')?.className }));
    }
  }
  return rows;
})()"""
READ_TABLE = """[...document.querySelectorAll('%s tr')].map(
  (row) => [...row.children].map((cell) => cell.textContent))"""


def time_text(us):
    if us >= 1000:
        return f"{us / 1000:.2f} ms"
    return f"{us:.{1 if us >= 10 or us == 0 else 2 if us >= 1 else 3}f} µs"


def percent_text(share):
    return f"{100 * share:.{1 if share < 0.0995 else 0}f} %"


def bytes_text(count):
    units = ["B", "KB", "MB", "GB"]
    while count >= 1000 and len(units) > 1:
        count, _ = count / 1000, units.pop(0)
    return f"{count:.{0 if units[0] == 'B' or count >= 100 else 1}f} {units[0]}"


class PageCase(unittest.TestCase):
    """No page may complain or ask for anything. `engine_inspect` and `shots`, a folder for pictures
    or None, are set before the tests run."""

    engine_inspect, shots = "", None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(find_browser())
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def show(self, *reports, address=""):
        """Makes the page of the reports and loads it; milliseconds to its first drawing."""
        paths = []
        for i, report in enumerate(reports):
            paths.append(os.path.join(self.folder.name, f"{'ab'[i]}.json"))
            pathlib.Path(paths[-1]).write_text(json.dumps(report), encoding="utf-8")
        self.html = os.path.join(self.folder.name, "page.html")
        subprocess.run(
            [self.engine_inspect, *paths, "--html", self.html],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return self.browser.load(self.html, address)

    def shoot(self, name):
        if self.shots:
            self.browser.screenshot(os.path.join(self.shots, name + ".png"))

    def text(self, selector="main"):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(
            [url for url in self.browser.requests if not url.startswith(("file:", "data:"))], []
        )
