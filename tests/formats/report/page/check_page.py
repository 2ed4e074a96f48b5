"""The report's page in a headless Chromium: its figures are the report's, whatever names a model
has and however many regions. Usage: check_page.py ENGINE_INSPECT [SCREENSHOT_FOLDER]
"""

import copy
import sys
import unittest

import made_reports
from browser import find_browser
from figures import NAMES, Figures  # unittest runs what is named here
from page_case import READ_GRID, READ_TABLE, PageCase, time_text

# On an idle machine it is about half a second; these tell a fault from a busy machine.
FIRST_RENDER_MS, NEXT_VIEW_MS = 3000, 3000


class Harm(PageCase):
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


class Large(PageCase):
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
            "first render with 2,000 regions at 3 points: "
            f"overview {overview:.0f} ms, layers {layers:.0f} ms"
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


class Diff(PageCase):
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
            "[...document.querySelectorAll('#masthead .choice')]"
            ".find((one) => one.textContent === 'B').click()"
        )
        self.browser.go("#view=overview&engine=1")
        self.assertEqual(self.browser.evaluate(READ_TABLE % ".points")[1][5], "23")


if __name__ == "__main__":
    if not find_browser():
        print("skipped: no Chromium; Debian's package is chromium")
        sys.exit(0)
    PageCase.engine_inspect = sys.argv[1]
    PageCase.shots = sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
