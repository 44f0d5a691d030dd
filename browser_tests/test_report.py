"""Reports in headless Chromium: `make test-report`. Screenshots, go to out/report."""
# ruff: noqa: ANN001, ANN201, ANN202, D103, INP001, S101  (a test, but outside of tests/, since `make test` needs no browser)

import base64
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from selenium import webdriver
from sklearn.datasets import load_digits, load_iris

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.report import write_report
from bayesvm.workflow import fit_table

OUT = Path(__file__).parent.parent / "out" / "report"
WIDTHS = {"desk": 1280, "phone": 390}
PIECE = 2200  # pixels of a page in one screenshot

PLOTS = """
return [...document.querySelectorAll("figure svg")].map(svg => {
  const box = svg.getBoundingClientRect();
  return [box.left, box.right, box.height, svg.querySelectorAll("path").length];
})"""
TEXTS = """
return [...document.querySelectorAll("svg text")].map(text => {
  const box = text.getBoundingClientRect(), turn = text.getScreenCTM();
  return [parseFloat(getComputedStyle(text).fontSize) * Math.hypot(turn.a, turn.b), box.left, box.right];
})"""
COLOURS = """
const page = getComputedStyle(document.body).backgroundColor, probe = document.createElement("i");
document.body.append(probe);
const names = ["c0", "c1", "c2", "c3", "c4", "c5", "up", "down"].map(name => `var(--${name})`);
return ["currentColor", ...names].map(colour => {
  probe.style.color = colour;
  return [getComputedStyle(probe).color, page];
})"""


def customers(n_rows=1500):
    """Text, numbers and missing values."""
    rng = np.random.default_rng(0)
    regions = ["Nordrhein-Westfalen", "Bayern", "Berlin", "Sachsen", "Baden-Württemberg"]
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "income per year": np.round(np.exp(rng.normal(10.3, 0.5, n_rows)), -2),
            "region": rng.choice(regions, n_rows, p=[0.35, 0.25, 0.2, 0.12, 0.08]),
            "contract": rng.choice(["monthly", "yearly"], n_rows, p=[0.6, 0.4]),
            "months as a customer": rng.integers(1, 96, n_rows),
            "calls": rng.poisson(1.2, n_rows),
            "customer id": [f"C{i:05d}" for i in range(n_rows)],
        }
    )
    f = 0.9 * (table.contract == "monthly") - 0.05 * (table["months as a customer"] - 40) + 0.9 * (table.calls - 1)
    table["leaves"] = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-f)), "yes", "no")
    table.loc[rng.random(n_rows) < 0.08, "income per year"] = np.nan
    table.loc[rng.random(n_rows) < 0.05, "region"] = None
    return table


def fitted(name, folder):
    if name == "digits":
        table, target, estimator = load_digits(as_frame=True).frame.head(900), "target", BayesianSVC(n_inducing=60)
    elif name == "iris":
        table, target, estimator = load_iris(as_frame=True).frame, "target", BayesianSVC(n_inducing=40)
    else:
        table, target = customers(), "leaves"
        estimator = BayesianLinearSVC() if name == "linear" else BayesianSVC(n_inducing=100)
    table.to_csv(folder / f"{name}.csv", index=False)
    estimator.set_params(random_state=0)
    holdout = 0 if name == "iris" else 0.3
    return fit_table(folder / f"{name}.csv", target, holdout=holdout, estimator=estimator)


@pytest.fixture(scope="module", params=["customers", "digits", "iris", "linear"])
def report(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_report(fitted(request.param, folder), folder / f"{request.param}.html")


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.binary_location = shutil.which("chromium")
    # Both as they are installed: otherwise Selenium looks for them on the network.
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def open_page(browser, path, width, scheme):
    phone = {"width": width, "height": 844, "deviceScaleFactor": 1.5 if width < 500 else 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(path.as_uri())


def take_screenshots(browser, name, width):
    height = browser.execute_script("return document.documentElement.scrollHeight")
    for number, top in enumerate(range(0, height, PIECE)):
        clip = {"x": 0, "y": top, "width": width, "height": min(PIECE, height - top), "scale": 1}
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        (OUT / f"{name}-{number + 1}.png").write_bytes(base64.b64decode(taken["data"]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_a_report_can_be_read_everywhere(browser, report, device, scheme):
    OUT.mkdir(parents=True, exist_ok=True)
    width = WIDTHS[device]
    open_page(browser, report, width, scheme)
    take_screenshots(browser, f"{report.stem}-{device}-{scheme}", width)

    assert browser.get_log("browser") == []
    loaded = [
        line["message"] for line in browser.get_log("performance") if '"Network.requestWillBeSent"' in line["message"]
    ]
    assert all(report.name in message or "data:," in message for message in loaded)

    plots = browser.execute_script(PLOTS)
    assert len(plots) >= 7
    for left, right, height, n_paths in plots:
        assert 0 <= left < right <= width
        assert right - left > 300
        assert height > 120
        assert n_paths > 5

    assert browser.execute_script("return document.documentElement.scrollWidth") <= width

    texts = browser.execute_script(TEXTS)
    assert min(size for size, _, _ in texts) > 7.5
    assert min(left for _, left, _ in texts) >= 0
    assert max(right for _, _, right in texts) <= width

    for number, (ink, page) in enumerate(browser.execute_script(COLOURS)):
        assert contrast(ink, page) > (7 if number == 0 else 4.5 if number > 6 else 3), (
            number,
            ink,
        )  # text, lines, small text


def contrast(one, other):
    """As WCAG 2 defines it: 4.5 is enough for text."""

    def brightness(colour):
        parts = np.array([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        return np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([brightness(one), brightness(other)])
    return (high + 0.05) / (low + 0.05)
