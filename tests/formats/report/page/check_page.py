"""The report's page in a headless Chromium: its figures are the report's, whatever names a model
has and however many regions. Usage: check_page.py ENGINE_INSPECT [SCREENSHOT_FOLDER]
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import made_reports
from browser import Browser, find_browser

ENGINE_INSPECT, SHOTS = "", None
NAMES = [f"/layer.{i}/MatMul + /layer.{i}/Add" for i in range(24)]
# On an idle machine it is about half a second; these tell a fault from a busy machine.
FIRST_RENDER_MS, NEXT_VIEW_MS = 3000, 3000

# Every row of a grid, by its number, scrolled into sight bit by bit.
READ_GRID = """(async () => {
  const box = document.querySelector('.grid[aria-label="%s"]'), rows = [];
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (let top = 0; top <= box.scrollHeight; top += Math.max(30, box.clientHeight - 60)) {
    box.scrollTop = top;
    await frame();
    for (const row of box.querySelectorAll('.rows .row')) {
      rows[row.ariaRowIndex - 2] = [...row.children].map((cell) => ({
        text: cell.textContent, us: Number(cell.querySelector('[data-us]')?.dataset.us),
        title: cell.querySelector('[title]')?.title, changed: cell.querySelector('.changed')?.className }));
    }
  }
  return rows;
})()"""
READ_TABLE = "[...document.querySelectorAll('%s tr')].map((row) => [...row.children].map((c) => c.textContent))"


def time_text(us):
    if us >= 1000:
        return f"{us / 1000:.2f} ms"
    return f"{us:.{1 if us >= 10 or us == 0 else 2 if us >= 1 else 3}f} µs"


def bytes_text(count):
    units = ["B", "KB", "MB", "GB"]
    while count >= 1000 and len(units) > 1:
        count, _ = count / 1000, units.pop(0)
    return f"{count:.{0 if units[0] == 'B' or count >= 100 else 1}f} {units[0]}"


class Page(unittest.TestCase):
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
            [ENGINE_INSPECT, *paths, "--html", self.html], check=True, stdout=subprocess.DEVNULL
        )
        return self.browser.load(self.html, address)

    def shoot(self, name):
        if SHOTS:
            self.browser.screenshot(os.path.join(SHOTS, name + ".png"))

    def text(self, selector="main"):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(
            [url for url in self.browser.requests if not url.startswith(("file:", "data:"))], []
        )


class Figures(Page):
    """What is shown is what the report says."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.report = made_reports.report(NAMES, [1, 8, 32])

    def setUp(self):
        self.show(self.report)

    def test_overview(self):
        rows = self.browser.evaluate(READ_TABLE % ".points")[1:]
        self.assertEqual(len(rows), 3)
        for row, point in zip(rows, self.report["points"]):
            self.assertEqual(
                row[:4],
                [
                    point["name"],
                    time_text(point["sum_us"]),
                    time_text(point["graph_us"]),
                    time_text(point["graph_us"] / point["batch"]),
                ],
            )
            self.assertEqual(
                row[5:7], [str(len(point["regions"])), bytes_text(point["memory"]["arena_bytes"])]
            )
        self.assertIn("219 MB", self.text())
        self.shoot("overview")

    def test_matrix(self):
        self.browser.go("#view=layers")
        rows = self.browser.evaluate(READ_GRID % "matrix")
        self.assertEqual(len(rows), len(NAMES))
        for i, row in enumerate(rows):
            winners = [point["regions"][i]["candidates"][0] for point in self.report["points"]]
            self.assertEqual(row[0]["title"], NAMES[i])
            self.assertEqual(
                [cell["us"] for cell in row[2:]], [winner["median_us"] for winner in winners]
            )
            self.assertEqual(
                [cell["text"] for cell in row[2:]],
                [time_text(winner["median_us"]) for winner in winners],
            )
            for before, now, cell in zip(winners, winners[1:], row[3:]):
                expected = (
                    "changed provider"
                    if before["provider"] != now["provider"]
                    else "changed key" if before["key"] != now["key"] else None
                )
                self.assertEqual(cell.get("changed"), expected)
        self.shoot("matrix")

    def test_regions(self):
        self.browser.go("#view=regions&point=1")
        regions = self.report["points"][1]["regions"]
        for row, region in zip(self.browser.evaluate(READ_GRID % "regions"), regions, strict=True):
            self.assertEqual(row[2]["us"], region["candidates"][0]["median_us"])
            self.assertEqual(
                row[4]["text"],
                f"{100 * region['roofline_share']:.{1 if region['roofline_share'] < 0.0995 else 0}f} %",
            )
            self.assertEqual(row[8]["text"], str(len(region["candidates"])))
            self.assertEqual(
                row[9]["text"],
                region["candidates"][0]["provider"] + " " + region["candidates"][0]["key"],
            )

    def test_candidates(self):
        for index, region in enumerate(self.report["points"][1]["regions"]):
            self.browser.go(f"#view=layers&point=1&region={index}")
            shown = self.browser.evaluate(
                "[...document.querySelectorAll('#panel .candidate')].map((one) => [...one.querySelectorAll('th, td')]"
                ".map((cell) => cell.innerText))"
            )
            self.assertEqual(len(shown), len(region["candidates"]))
            by_key = {row[0]: row for row in shown}
            for candidate in region["candidates"]:
                row = by_key[(candidate["provider"] + " " + candidate["key"]).strip()]
                timed = candidate["median_us"] > 0
                self.assertEqual(row[1], time_text(candidate["median_us"]) if timed else "–")
                self.assertEqual(row[2], "± " + time_text(candidate["spread_us"]) if timed else "–")
                self.assertIn(candidate["reason"], row[5])
                if candidate["verdict"] == "wrong":
                    self.assertEqual((row[3], "wrong result" in row[5]), ("3.0", True))
            self.assertEqual(shown[0][5].strip(), "chosen")
            for origin in region["origins"]:
                self.assertIn(origin, self.text("#panel"))
        self.shoot("candidates")

    def test_memory(self):
        self.browser.go("#view=memory&point=2")
        memory = self.report["points"][2]["memory"]
        self.assertEqual(self.count("rect.buffer"), len(memory["buffers"]))
        text = self.text()
        self.assertIn(bytes_text(memory["arena_bytes"]) + ", 1.000 times the lower bound", text)
        # Three buffers of one size live at once from the third step on.
        self.assertIn(bytes_text(memory["arena_bytes"]) + ", at step 2", text)
        self.browser.evaluate("document.querySelectorAll('svg')[1].focus()")
        self.browser.press("ArrowRight")
        self.assertIn(
            "step 0, " + bytes_text(memory["arena_bytes"] // 3) + " live", self.text("#tip")
        )
        self.shoot("memory")

    def test_precision(self):
        self.browser.go("#view=precision")
        point = self.report["points"][0]
        for row, share in zip(
            self.browser.evaluate(READ_TABLE % ".plain")[1:], point["precision"], strict=True
        ):
            of = [
                region
                for region in point["regions"]
                if region["precision_realised"] == share["precision"]
            ]
            us = sum(region["candidates"][0]["median_us"] for region in of)
            self.assertEqual(
                row[:3] + row[4:],
                [
                    share["precision"],
                    str(share["regions"]),
                    time_text(us),
                    bytes_text(share["bytes"]),
                ],
            )
        wide = [region for region in point["regions"] if region["precision_realised"] == "f32"]
        self.assertEqual(len(self.browser.evaluate(READ_GRID % "held back")), len(wide))
        self.shoot("precision")

    def test_fusion(self):
        self.browser.go("#view=fusion")
        point = self.report["points"][0]
        miss, producer = point["near_misses"][0], point["regions"][0]
        row = [cell["text"] for cell in self.browser.evaluate(READ_GRID % "near misses")[0]]
        self.assertEqual(
            row[1:],
            [
                bytes_text(producer["bytes_written"]),
                miss["producer"],
                miss["consumer"],
                miss["rule"],
                miss["reason"],
            ],
        )
        shortest = min(region["candidates"][0]["median_us"] for region in point["regions"])
        self.assertEqual(row[0], time_text(2 * producer["bytes_written"] / 4.8e12 * 1e6 + shortest))

    def test_roofline(self):
        self.browser.go("#view=roofline&point=2")
        self.assertEqual(self.count("circle.dot"), len(NAMES))
        self.assertEqual(self.count("path.roof.peak"), 2)  # of f16 and f32
        labels = self.browser.evaluate("document.querySelector('svg').textContent")
        self.assertIn("f16 989 TFLOP/s, 4.8 TB/s", labels)
        shown = {row[0]: int(row[1]) for row in self.browser.evaluate(READ_TABLE % ".plain")[1:]}
        self.assertEqual(sum(shown.values()), len(NAMES))
        self.shoot("roofline")

    def test_gains(self):
        self.browser.go("#view=gains")
        rows = self.browser.evaluate(READ_GRID % "gains")
        regions = {region["name"]: region for region in self.report["points"][0]["regions"]}
        headroom = {row[4]["title"]: row[0]["text"] for row in rows if row[2]["text"] == "roofline"}
        self.assertEqual(len(headroom), len(NAMES))
        for name, gain in headroom.items():
            region = regions[name]
            self.assertEqual(
                gain,
                time_text(region["candidates"][0]["median_us"] * (1 - region["roofline_share"])),
            )
        kinds = {row[2]["text"] for row in rows}
        self.assertEqual(kinds, {"roofline", "wrong result", "precision", "fusion"})
        self.shoot("gains")

    def test_build(self):
        self.browser.go("#view=build")
        text = self.text()
        for part in (
            "00112233445566ff",
            "91900",
            "random rows",
            "0.999999",
            "fold-constants",
            "12.8 s",
            "timing cache 't.json' is damaged and was ignored",
            "4.8 TB/s (published)",
        ):
            self.assertIn(part, text)
        self.shoot("build")

    def test_search_and_sort(self):
        self.browser.go("#view=regions")
        self.browser.press("/")
        self.browser.call("Input.insertText", text="LAYER.7/ second")
        self.browser.settle()
        self.assertEqual(
            [row[1]["title"] for row in self.browser.evaluate(READ_GRID % "regions")], [NAMES[7]]
        )
        self.browser.evaluate("document.querySelector('input').select()")
        self.browser.call("Input.insertText", text="layer")
        self.browser.evaluate("document.querySelectorAll('[role=columnheader] button')[2].click()")
        times = [row[2]["us"] for row in self.browser.evaluate(READ_GRID % "regions")]
        self.assertEqual(len(times), len(NAMES))
        self.assertEqual(times, sorted(times, reverse=True))

    def test_keys(self):
        self.browser.go("#view=layers")
        self.browser.evaluate("document.querySelector('.grid').focus()")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
            self.browser.press(key)
        self.assertEqual(self.text("#panel h2"), NAMES[2])
        self.assertEqual(self.text("#panel [aria-pressed=true] b"), "b8")
        self.browser.press("ArrowDown")  # the table keeps the focus
        self.browser.press("Enter")
        self.assertEqual(self.text("#panel h2"), NAMES[3])
        self.browser.press("Escape")
        self.assertTrue(self.browser.evaluate("document.getElementById('panel').hidden"))
        self.browser.go("#view=roofline")
        self.browser.evaluate("document.querySelector('svg.plot').focus()")
        self.browser.press("ArrowRight")
        slowest = max(
            self.report["points"][0]["regions"],
            key=lambda region: region["candidates"][0]["median_us"],
        )
        self.assertIn(slowest["name"], self.text("#tip"))

    def test_themes(self):
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        light = self.browser.evaluate(paper)
        self.browser.dark()
        dark = self.browser.evaluate(paper)
        self.assertNotEqual(light, dark)
        self.shoot("dark")
        self.browser.evaluate("document.querySelector('[aria-label=\"Light or dark\"]').click()")
        self.assertEqual(self.browser.evaluate(paper), light)
        self.browser.evaluate("localStorage.clear()")
        self.browser.dark(False)


class Harm(Page):
    """Names are text."""

    def test_harmful_names(self):
        report = made_reports.report(
            made_reports.HARMFUL_NAMES, [1, 8], model=made_reports.HARMFUL_NAMES[1]
        )
        for point in report["points"]:
            point["near_misses"][0]["reason"] = made_reports.HARMFUL_NAMES[0]
            for region, name in zip(point["regions"], made_reports.HARMFUL_NAMES):
                region["candidates"][0]["key"] = region["kind"] = region["rule"] = name
                region["precision_reason"] = region["refusals"][0]["provider"] = name
                region["precision_realised"] = name
        other = copy.deepcopy(report)
        other["build"]["device"] = made_reports.HARMFUL_NAMES[0]
        self.show(report, other)
        views = self.browser.evaluate(
            "[...document.querySelectorAll('#views a')].map((a) => a.hash)"
        )
        self.assertEqual(len(views), 11)
        for view in views:
            self.browser.go(view)
            self.assertEqual(self.count("#main, #views, #masthead"), 3)
            self.assertEqual(self.count("img, b b, main script, script:not([type])"), 0, view)
        self.browser.go("#view=regions")
        shown = [row[1]["title"] for row in self.browser.evaluate(READ_GRID % "regions")]
        self.assertEqual(shown, made_reports.HARMFUL_NAMES)
        for index in range(len(made_reports.HARMFUL_NAMES)):
            self.browser.go(f"#view=layers&region={index}")
        self.assertEqual(self.browser.evaluate("typeof window.harmed"), "undefined")
        self.shoot("harm")

    def test_odd_reports(self):
        empty = made_reports.report([], [1])
        nowhere = made_reports.report(NAMES, [])
        odd = made_reports.report(NAMES[:3], [1])
        regions = odd["points"][0]["regions"]
        regions[0]["candidates"][0].update(median_us=None, spread_us=None, max_abs_error=None)
        regions[1].update(chosen=-1, candidates=[], origins=[], types=[])
        regions[2].update(bytes_read=0, bytes_written=0, flops=0, name=regions[1]["name"])
        odd["points"][0].update(near_misses=[], verification=[], precision=[])
        odd["build"]["peak_rates"] = dict.fromkeys(made_reports.PEAK, 0.0) | {"source": ""}
        odd["points"][0]["memory"]["buffers"][0].update(first_step=-5, last_step=10**15)
        odd["points"][0]["memory"]["buffers"][1].update(first_step=10**15, last_step=10**15)
        regions[0]["candidates"][1].update(median_us=1e-320, spread_us=1e308)
        for reports in ([empty], [nowhere], [odd], [empty, odd], [nowhere, odd]):
            self.show(*reports)
            for view in self.browser.evaluate(
                "[...document.querySelectorAll('#views a')].map((a) => a.hash)"
            ):
                self.browser.go(view)
                self.assertEqual(self.browser.complaints, [], view)
                self.assertNotEqual(self.text(), "")
                self.assertNotIn("NaN", self.text(), view)
                self.assertNotIn("undefined", self.text(), view)
        self.browser.go("#view=nonsense&point=99&region=99&engine=7")
        self.assertNotEqual(self.text(), "")


class Large(Page):
    """2,000 regions."""

    def test_two_thousand_regions(self):
        names = [
            f"/model/layer.{i}/self_attention/MatMul + /model/layer.{i}/self_attention/Add"
            for i in range(2000)
        ]
        report = made_reports.report(names, [1, 8, 64], candidates=10)
        overview = min(self.show(report) for _ in range(2))
        layers = min(self.show(report, address="#view=layers") for _ in range(2))
        print(
            f"first render with 2,000 regions at 3 points: overview {overview:.0f} ms, layers {layers:.0f} ms"
        )
        self.assertLess(min(overview, layers), FIRST_RENDER_MS)
        self.assertLess(self.count("*"), 3000)
        self.browser.evaluate("document.querySelector('.grid').focus()")
        self.browser.press("End")
        self.assertIn("/model/layer.1999/", self.text(".grid .rows"))
        self.browser.press("Enter")
        self.assertEqual(self.text("#panel h2"), names[-1])
        for view in ("regions", "gains", "roofline", "memory", "nodes", "fusion"):
            begin = self.browser.evaluate("performance.now()")
            self.browser.go(f"#view={view}")
            took = self.browser.evaluate("performance.now()") - begin
            print(f"{view}: {took:.0f} ms")
            self.assertLess(took, NEXT_VIEW_MS, view)
            self.shoot("large-" + view)


class Diff(Page):
    """Two engines."""

    def test_fused_otherwise(self):
        a = made_reports.report(NAMES, [1, 8])
        b = copy.deepcopy(a)
        b["build"]["precision"] = "bf16"
        for point in b[
            "points"
        ]:  # the first two became one region, the third is faster, the fourth is new
            first, second, third, fourth = point["regions"][:4]
            first["origins"] += second["origins"]
            first["candidates"][0]["median_us"] += 1.5
            third["candidates"][0].update(
                median_us=third["candidates"][0]["median_us"] / 2, key="another"
            )
            fourth.update(origins=["new"], name="new")
            del point["regions"][1]
            point["graph_us"] = round(point["graph_us"] * 0.9, 3)
        self.show(a, b)
        totals = self.browser.evaluate(READ_TABLE % ".plain")[1:]
        for row, x, y in zip(totals, a["points"], b["points"], strict=True):
            self.assertEqual(
                row[:3], [x["name"], time_text(x["graph_us"]), time_text(y["graph_us"])]
            )
            self.assertEqual(
                row[3:5],
                [
                    "−" + time_text(x["graph_us"] - y["graph_us"]),
                    f"{y['graph_us'] / x['graph_us']:.3f}",
                ],
            )
            self.assertEqual(row[7], "24 → 23")
        self.assertIn("fp16 → bf16", self.text())
        rows = {row[7]["title"]: row for row in self.browser.evaluate(READ_GRID % "diff")}
        self.assertEqual(len(rows), 24)  # 23 of B, and A's fourth
        medians = [region["candidates"][0]["median_us"] for region in a["points"][0]["regions"]]
        fused = rows[NAMES[0]]
        self.assertAlmostEqual(fused[0]["us"], 1.5 - medians[1])
        self.assertEqual(fused[1]["text"], time_text(medians[0] + medians[1]))
        self.assertEqual(fused[4]["text"], "2 → 1 regions")
        self.assertAlmostEqual(rows[NAMES[2]][0]["us"], -medians[2] / 2)
        self.assertEqual(rows[NAMES[2]][4]["text"], "tactic")
        self.assertEqual(rows["new"][4]["text"], "only in B")
        self.assertEqual(rows[NAMES[3]][4]["text"], "only in A")
        self.assertEqual(rows[NAMES[5]][4]["text"], "–")
        by_point = {
            row[0]["title"]: [cell["us"] for cell in row[1:]]
            for row in self.browser.evaluate(READ_GRID % "diff matrix")
        }
        self.assertEqual(len(by_point), 24)
        for at, point in enumerate(a["points"]):
            medians = [region["candidates"][0]["median_us"] for region in point["regions"]]
            self.assertAlmostEqual(by_point[NAMES[0]][at], 1.5 - medians[1])
            self.assertAlmostEqual(by_point[NAMES[2]][at], -medians[2] / 2)
            self.assertEqual(by_point[NAMES[5]][at], 0)
        self.shoot("diff")
        self.browser.evaluate(
            "[...document.querySelectorAll('#masthead .choice')].find((b) => b.textContent === 'B').click()"
        )
        self.browser.go("#view=overview&engine=1")
        self.assertEqual(self.browser.evaluate(READ_TABLE % ".points")[1][5], "23")


if __name__ == "__main__":
    if not find_browser():
        print("skipped: no Chromium; Debian's package is chromium")
        sys.exit(0)
    ENGINE_INSPECT, SHOTS = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
