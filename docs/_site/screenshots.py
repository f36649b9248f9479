"""Takes the pictures that pages show, of the drawing in a real browser: python docs/_site/screenshots.py.

Needs Chromium with its driver, selenium and Pillow. Pictures are small: a palette, and no more pixels than are shown.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from selenium import webdriver
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv, global_add_pool

from gflowexplainer import GFlowExplainer
from gflowexplainer.report import Case, Report, write_report
from gflowexplainer.sources import karate_club

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
MEMBERS = (28, 8, 24)
RING, TRIANGLE = (0, 1, 2, 3), (7, 8, 9)


def write_pages(folder: Path) -> None:
    """Writes a notebook's output and a report that compares two runs."""
    club = karate_club()
    (graph,) = club.graphs
    words: dict[str, Any] = {"classes": club.classes}
    first, second = (
        GFlowExplainer(seed=0, **changes).explain(club.model, graph, index=list(MEMBERS))
        for changes in ({}, {"max_nodes": 3})
    )
    (folder / "notebook.html").write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body style="margin: 0">{first[0].show(**words)._repr_html_()}'
    )
    cases = [Case(a.name, a, beside={"at most 3 nodes": b}, **words) for a, b in zip(first, second, strict=True)]
    write_report(Report("Zachary's karate club", cases), folder / "report.html")
    write_report(Report("Two places", [two_parts()]), folder / "parts.html")


class Both(torch.nn.Module):
    """Says 1 of a graph where a ring of four and a triangle, both of feature 1, are there."""

    def __init__(self) -> None:
        super().__init__()
        self.count = SimpleConv(aggr="sum")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns raw scores ``[G, 2]``."""
        inside = x * (self.count(x, edge_index) >= 2)
        groups = global_add_pool(inside, batch)
        missing = (len(RING) - groups[:, 0]).relu() + (len(TRIANGLE) - groups[:, 1]).relu()
        return torch.stack([missing, 2.5 - missing], dim=1)


def two_parts() -> Case:
    """Explains a graph of which two places are needed together."""
    ring = [(RING[i], RING[(i + 1) % 4]) for i in range(4)]
    rest = [(3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 7), (5, 10), (10, 11), (9, 12), (1, 13), (13, 14)]
    edges = torch.tensor(ring + rest).t()
    x = torch.zeros(15, 2)
    x[list(RING), 0] = x[list(TRIANGLE), 1] = 1.0
    graph = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    found = GFlowExplainer(seed=0, max_nodes=8).explain(Both(), [graph], model_config=config)
    words: dict[str, Any] = {"classes": ["no", "ring and triangle"], "feature_names": ["of a ring", "of a triangle"]}
    return Case("two places together", found[0], **words)


def browser() -> Any:
    """Starts Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1120,600"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def shot(chrome: Any, width: int, height: int) -> Image.Image:
    """Takes a picture of the upper left corner of what is shown."""
    picture = Image.open(io.BytesIO(chrome.get_screenshot_as_png())).convert("RGB")
    return picture.crop((0, 0, min(width, picture.width), min(height, picture.height)))


def save(picture: Image.Image, name: str) -> None:
    """Writes a picture with 128 colours."""
    picture.quantize(128, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)
    print(name, (PICTURES / f"{name}.png").stat().st_size)


def emulate(chrome: Any, *, dark: bool = False, width: int = 1120, height: int = 600, mobile: bool = False) -> None:
    """Sets the colour scheme and the size of the screen."""
    feature = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": feature})
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def main() -> None:
    """Takes all pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder, chrome = Path(name), browser()
        write_pages(folder)
        notebook, report = ((folder / file).as_uri() for file in ("notebook.html", "report.html"))
        for scheme in ("notebook", "dark"):
            emulate(chrome, dark=scheme == "dark", height=1000)
            chrome.get(notebook)
            time.sleep(1)  # until the frame has told how high it is
            height = chrome.execute_script("return document.querySelector('iframe').clientHeight")
            save(shot(chrome, 1120, height), scheme)
        emulate(chrome, width=390, height=844, mobile=True)
        chrome.get(report)
        chrome.execute_script("document.getElementById('case').scrollIntoView()")
        save(shot(chrome, 390, 844), "phone")
        emulate(chrome, height=1000)
        chrome.get(report)
        chrome.execute_script("document.querySelector('#case .wide:last-child').scrollIntoView()")
        save(shot(chrome, 1120, 900), "comparison")
        emulate(chrome, height=790)
        chrome.get((folder / "parts.html").as_uri())
        chrome.execute_script("document.getElementById('case').scrollIntoView()")
        save(shot(chrome, 1120, 790), "parts")
        chrome.quit()


if __name__ == "__main__":
    main()
