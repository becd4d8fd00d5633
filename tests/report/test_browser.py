"""The page in a browser: everything is there, legible in both modes, and usable without a mouse.

Debian's Chromium, driven by Playwright; it skips where one of them is missing.
"""

import shutil

import pytest
import tiny

from kernelcore import experiments, report
from kernelcore.experiments import Failure

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATH = next((path for name in BROWSERS if (path := shutil.which(name))), None)

SHOWN = ("profiles", "spectrum", "digits", "images")

# Every text with its colour and what lies behind it, as WCAG computes their contrast; and what a
# screen reader needs. In the browser, because only it knows which rules apply.
CHECK = """
() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), element = walk.currentNode.parentElement;
    if (!text || element.closest('.skip')) continue;
    texts++;
    const style = getComputedStyle(element);
    const color = parse(element.closest('svg') ? style.fill : style.color);
    const value = contrast(color, behind(element));
    const least = element.closest('svg') ? 3 : 4.5;  // names of curves may have their colours
    if (!(value >= least)) found.push(`contrast ${value.toFixed(2)} of "${text.slice(0, 40)}"`);
  }
  const lines = new Set();
  for (const e of document.querySelectorAll('svg path, svg use')) {
    const style = getComputedStyle(e);
    if (style.stroke === 'none' || e.closest('defs')) continue;
    const value = contrast(parse(style.stroke), behind(e.closest('figure')));
    if (parseFloat(style.strokeWidth) >= 1.15) lines.add(style.stroke + ' ' + value.toFixed(2));
  }
  const levels = [...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]));
  levels.forEach((level, k) => {
    if (level > (k ? levels[k - 1] : 0) + 1) found.push(`heading ${k} jumps to ${level}`);
  });
  for (const tag of ['main', 'header', 'footer', 'nav'])
    if (document.querySelectorAll(tag).length !== 1) found.push(`not one ${tag}`);
  const named = e => e.getAttribute('aria-label') || e.textContent.trim() ||
    document.getElementById(e.getAttribute('aria-labelledby'))?.textContent;
  for (const e of document.querySelectorAll('a, summary, nav, section, [role=img], [tabindex]'))
    if (!named(e)) found.push(`no name: ${e.outerHTML.slice(0, 60)}`);
  for (const e of document.querySelectorAll('svg[role=img]'))
    if ((e.getAttribute('aria-label') || '').length < 20) found.push('a figure without words');
  for (const table of document.querySelectorAll('table'))
    if (!table.querySelector('thead th[scope=col]')) found.push('a table without a head');
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size < ids.length) found.push('an id twice');
  if (!document.documentElement.lang || !document.title) found.push('no language or title');
  return {found, texts, lines: [...lines], width: document.documentElement.scrollWidth,
          figures: document.querySelectorAll('figure svg').length,
          tables: document.querySelectorAll('table').length};
}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    failed = [Failure("defaults", "no room"), Failure("uci", "no data", absent=True)]
    shown = [tiny.result(name) for name in SHOWN]
    return report.write([*shown, *failed], path).as_uri()


@pytest.fixture(scope="module")
def browser():
    if PATH is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        with driver.chromium.launch(executable_path=PATH, args=["--no-sandbox"]) as found:
            yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_in_a_browser(browser, address, width, scheme):
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=True
    )
    told, asked = [], []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    seen = page.evaluate(CHECK)
    assert told == []
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert seen["found"] == []
    assert seen["width"] <= width
    parts = [(experiments.load(name), tiny.result(name)) for name in SHOWN]
    assert seen["figures"] == sum(len(module.plot(result)) for module, result in parts) > 0
    # The verdicts, what sections have, and the settings of each, folded away.
    assert seen["tables"] >= 1 + sum(len(module.tables(result)) for module, result in parts) > 1
    assert seen["texts"] > 500
    if scheme == "dark":  # on white the palette of Okabe and Ito is as it is
        faint = [line for line in seen["lines"] if float(line.split()[-1]) < 3]
        assert faint == []
    page.close()


def test_keys_reach_the_verdicts_and_every_section(browser, address):
    page = browser.new_page(viewport={"width": 1200, "height": 900}, java_script_enabled=True)
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdicts"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#verdicts"
    # The table of verdicts begins on the first screen, with what crashed.
    first = page.locator(".verdicts tbody tr").first
    assert "no room" in first.inner_text()
    page.evaluate("scrollTo(0, 0)")
    assert first.bounding_box()["y"] < 900
    page.goto(f"{address}#images")
    page.wait_for_function("document.getElementById('images').getBoundingClientRect().top < 50")
    assert page.locator("details[open]").count() == 0
    page.close()
