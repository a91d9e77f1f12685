"""The reports as a reader meets them: offline, on a phone, on paper, without scripts."""

from __future__ import annotations

import pytest

from optsched.report.page import MISSING

NAMES = ("run", "comparison", "everything")
PAPER = 182 * 96 / 25.4
"""Width of A4 without margins, in CSS pixels."""

WIDEST = 20 * 16
"""Width of a cell of text in a row of many, in CSS pixels."""

COLUMN = """([table, column]) => Array.from(
    document.querySelectorAll("table")[table].tBodies[0].rows,
    (row) => row.cells[column].textContent
)"""


@pytest.fixture
def open_page(browser, reports):
    """Return the function that opens a report offline; a complaint of the page fails the test."""
    contexts, complaints, requests = [], [], []

    def show(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        address = getattr(reports, name).as_uri()
        page.goto(address)
        assert [url for url in requests if not url.startswith("data:")] == [address]
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_offline_and_its_pictures_are_drawn(open_page, name):
    page = open_page(name)
    pictures = page.locator("img")
    drawn = pictures.evaluate_all("all => all.map((i) => [i.naturalWidth > 0, i.alt.length > 0])")
    assert len(drawn) == {"run": 4, "comparison": 2, "everything": 2}[name]
    assert all(width and alt for width, alt in drawn)
    assert page.locator("h1").count() == 1
    assert page.title() == page.locator("h1").text_content()  # no script of a picture has run


def test_numbers_sort_as_numbers_and_what_is_missing_comes_last(open_page):
    page = open_page("everything")
    header = page.get_by_role("button", name="size")
    header.click()
    assert page.evaluate(COLUMN, [0, 1]) == ["20", "900", "1,000", MISSING]
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    header.click()
    assert page.evaluate(COLUMN, [0, 1]) == ["1,000", "900", "20", MISSING]
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="measured").first.click()  # below a common header
    assert page.evaluate(COLUMN, [0, 0]) == ["beta", "Alpha", "gamma-10", "gamma-9"]
    assert page.locator("th[aria-sort]").count() == 1


def test_texts_sort_as_people_do(open_page):
    page = open_page("everything")
    header = page.get_by_role("button", name="name")
    header.click()
    assert page.evaluate(COLUMN, [0, 0]) == ["Alpha", "beta", "gamma-9", "gamma-10"]
    header.press("Enter")
    assert page.evaluate(COLUMN, [0, 0]) == ["gamma-10", "gamma-9", "beta", "Alpha"]
    page.get_by_role("button", name="verdict").click()
    verdicts = ["holds", "holds", "holds in part", "does not hold"]
    assert page.evaluate(COLUMN, [0, 6]) == verdicts


def test_the_jobs_of_a_run_can_be_sorted(open_page):
    page = open_page("run")
    tables = page.locator("table").count()
    number = page.evaluate("""() => Array.from(document.querySelectorAll("table"))
        .findIndex((table) => table.textContent.includes("bounded slowdown")
            && table.textContent.includes("submitted"))""")
    assert 0 <= number < tables
    page.locator("table").nth(number).get_by_role("button", name="processors").click()
    sizes = [int(text.replace(",", "")) for text in page.evaluate(COLUMN, [number, 3])]
    assert len(sizes) == 20
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_shows_all_without_scrolling_sideways(open_page, name):
    page = open_page(name, viewport={"width": 400, "height": 800})
    assert overflow(page) <= 0
    boxes = page.locator(".box:has(table)").evaluate_all(
        "all => all.map((b) => [b.scrollWidth > b.clientWidth, getComputedStyle(b).overflowX])"
    )
    assert any(wider for wider, _ in boxes)  # else nothing was tested
    assert {style for _, style in boxes} == {"auto"}


def test_long_names_leave_room_for_the_other_columns(open_page):
    page = open_page("everything", viewport={"width": 1280, "height": 800})
    cells = (
        page.locator("table")
        .nth(1)
        .locator("td")
        .evaluate_all("all => all.slice(0, 2).map((c) => [c.textContent.length, c.offsetWidth])")
    )
    assert cells == [[300, WIDEST], [300, WIDEST]]


@pytest.mark.parametrize("name", NAMES)
def test_paper_shows_whole_tables_and_no_arrows(open_page, name):
    page = open_page(name, viewport={"width": int(PAPER), "height": 1000})
    arrow = "(b) => getComputedStyle(b, '::after').content"
    buttons = page.locator("thead button")
    assert "↕" in buttons.first.evaluate(arrow)
    page.emulate_media(media="print")
    assert {buttons.nth(i).evaluate(arrow) for i in range(buttons.count())} == {"none"}
    assert overflow(page) <= 0
    cut = page.locator("table").evaluate_all(
        "all => all.filter((t) => t.scrollWidth > t.parentNode.clientWidth).length"
    )
    assert cut == 0
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert b"/Type /Page\n" in printed or b"/Type /Page " in printed


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_all_is_there(open_page, name):
    page = open_page(name, java_script_enabled=False)
    assert page.locator("tbody tr").count() > 0
    assert page.locator("thead button").count() == 0
    assert page.locator("footer").is_visible()
