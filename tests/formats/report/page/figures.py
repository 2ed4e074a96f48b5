"""The page's figures are the report's, and its tools do what they say."""

import made_reports
from page_case import READ_GRID, READ_TABLE, PageCase, bytes_text, percent_text, time_text

NAMES = [f"/layer.{i}/MatMul + /layer.{i}/Add" for i in range(24)]


class Figures(PageCase):
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
                percent_text(region["roofline_share"]),
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
                "[...document.querySelectorAll('#panel .candidate')]"
                ".map((one) => [...one.querySelectorAll('th, td')]"
                ".map((cell) => cell.innerText))"
            )
            self.assertEqual(len(shown), len(region["candidates"]))
            by_key = {row[0]: row for row in shown}
            for candidate in region["candidates"]:
                row = by_key[(candidate["provider"] + " " + candidate["key"]).strip()]
                timed = candidate["median_us"] > 0
                self.assertEqual(row[1], time_text(candidate["median_us"]) if timed else "–")
                spread = "± " + time_text(candidate["spread_us"]) if timed else "–"
                self.assertEqual(row[2], spread)
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
