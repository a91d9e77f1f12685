"""The reports as a reader meets them: offline, on a phone, on paper, without scripts."""

from io import BytesIO

import pytest
from PIL import Image

from optsched.report.page import MISSING

pytestmark = pytest.mark.long

NAMES = ("run", "comparison", "effects", "everything")
PAPER = 182 * 96 / 25.4
"""Width of A4 without margins, in CSS pixels."""

WIDEST = 20 * 16
"""Width of a cell of text in a row of many, in CSS pixels."""

COLUMN = """([table, column]) => Array.from(
    document.querySelectorAll("table")[table].tBodies[0].rows,
    (row) => row.cells[column].textContent
)"""


@pytest.fixture
def open_page(visit, reports):
    """Return the function that opens a report offline."""
    return lambda name, **options: visit(getattr(reports, name).as_uri(), offline=True, **options)


def until(page, condition):
    """Wait until a condition holds; `wait_for_function` breaks the security policy of a page."""
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(25)
    assert condition()


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_offline_and_its_pictures_are_drawn(open_page, name):
    page = open_page(name)
    pictures = page.locator("img")
    drawn = pictures.evaluate_all("all => all.map((i) => [i.naturalWidth > 0, i.alt.length > 0])")
    assert len(drawn) == {"run": 4, "comparison": 2, "effects": 1, "everything": 4}[name]
    assert all(width and alt for width, alt in drawn)
    assert page.locator("h1").count() == 1
    assert page.title() == page.locator("h1").text_content()  # no script of a picture has run


def test_numbers_sort_as_numbers_texts_as_people_do_and_what_is_missing_comes_last(open_page):
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
    header = page.get_by_role("button", name="name")
    header.click()
    assert page.evaluate(COLUMN, [0, 0]) == ["Alpha", "beta", "gamma-9", "gamma-10"]
    header.press("Enter")
    assert page.evaluate(COLUMN, [0, 0]) == ["gamma-10", "gamma-9", "beta", "Alpha"]
    page.get_by_role("button", name="verdict").click()
    verdicts = ["does not hold", "holds", "holds", "holds in part"]
    assert page.evaluate(COLUMN, [0, 6]) == verdicts


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_shows_all_without_scrolling_sideways(open_page, name):
    page = open_page(name, viewport={"width": 400, "height": 800})
    assert overflow(page) <= 0
    boxes = page.locator(".box:has(table)").evaluate_all(
        "all => all.map((b) => [b.scrollWidth > b.clientWidth, getComputedStyle(b).overflowX])"
    )
    assert any(wider for wider, _ in boxes) == (name != "effects")  # whose tables are narrow
    assert {style for _, style in boxes} == {"auto"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_a_panel_of_its_own(open_page, scheme):
    drawn = {}
    page = open_page("effects", color_scheme=scheme)
    for width in (390, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        panel = page.locator("picture img")
        box = panel.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        drawn[width] = panel.evaluate("i => [i.naturalWidth, i.currentSrc.length]")
        assert 0.9 < box["width"] / drawn[width][0] < 1.2  # so its text has the size of the page's
        picture = Image.open(BytesIO(panel.screenshot())).convert("RGB")
        colors = {color for count, color in picture.getcolors(1 << 24) if count >= 20}
        blue = [c for c in colors if c[2] > c[0] + 100]
        orange = [c for c in colors if c[0] > c[2] + 100]
        assert blue
        assert orange
        paper = picture.getpixel((picture.width - 1, picture.height - 1))
        assert (min(paper) > 200) == (scheme == "light")
    assert drawn[390] != drawn[1400]


def test_long_names_leave_room_for_the_other_columns(open_page):
    page = open_page("everything", viewport={"width": 1280, "height": 800})
    cells = page.locator("table").nth(1).locator("td")
    widths = "all => all.slice(0, 2).map((c) => [c.textContent.length, c.offsetWidth])"
    assert cells.evaluate_all(widths) == [[300, WIDEST], [300, WIDEST]]


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
    assert page.get_by_role("heading", name="How to repeat this").is_visible()
    assert page.locator("canvas, .controls").count() == 0
    assert page.locator("img").first.is_visible()


@pytest.mark.parametrize("name", NAMES)
def test_the_contents_lead_to_the_sections(open_page, name):
    page = open_page(name, viewport={"width": 1400, "height": 600})
    ids = page.locator("[id]").evaluate_all("all => all.map((one) => one.id)")
    assert len(set(ids)) == len(ids)
    links = page.locator("nav a")
    assert links.all_text_contents() == [
        text.removesuffix("#") for text in page.locator("h2").all_text_contents()
    ]
    for place in range(links.count()):
        links.nth(place).click()
        assert page.locator(":target").evaluate("(heading) => heading.tagName") == "H2"
        top = page.locator(":target").bounding_box()["y"]
        assert 0 <= top < 600


CONTRAST = r"""(selector) => {
    const probe = document.querySelector(selector);
    const luminance = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number)
        .map((part) => part / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, place) => sum + [0.2126, 0.7152, 0.0722][place] * part, 0);
    const own = getComputedStyle(probe);
    let behind = probe;
    while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
        behind = behind.parentElement;
    const [a, b] = [own.color, getComputedStyle(behind).backgroundColor].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


@pytest.mark.parametrize(("scheme", "shade"), [("light", 255), ("dark", 23)])
def test_in_the_light_and_in_the_dark_texts_have_contrast(open_page, scheme, shade):
    page = open_page("everything", color_scheme=scheme)
    texts = ["p", "figcaption", "nav a", "dt", "dd", "td small", "th button", "pre", "summary"]
    for selector in (*texts, ".controls button"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector
    page = open_page("run", color_scheme=scheme)
    with Image.open(BytesIO(page.locator("img").nth(1).screenshot())) as picture:
        assert picture.convert("L").getpixel((3, 3)) == shade
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == f"rgb({shade}, {shade}, {shade})"


def test_a_long_table_is_folded_and_scrolls_in_its_box(open_page):
    page = open_page("everything", viewport={"width": 1400, "height": 900})
    table = page.locator("table", has_text="snapshot-50")
    assert not table.is_visible()
    page.get_by_text("Many. 51 rows").click()
    assert table.is_visible()
    box = page.locator(".long")
    assert box.evaluate("(b) => b.scrollHeight > b.clientHeight")
    assert box.bounding_box()["height"] <= 640
    table.get_by_role("button", name="number").dblclick()
    assert table.locator("tbody th").first.text_content() == "snapshot-50"


def test_a_table_that_is_cut_shows_it(open_page):
    page = open_page("everything", viewport={"width": 390, "height": 800})
    box = page.locator(".box:has(table)").first
    sides = "(b) => ['cut-left', 'cut-right'].map((side) => b.classList.contains(side))"
    until(page, lambda: box.evaluate(sides) == [False, True])
    box.evaluate("(b) => { b.scrollLeft = 40; }")
    until(page, lambda: box.evaluate(sides) == [True, True])
    box.evaluate("(b) => { b.scrollLeft = b.scrollWidth; }")
    until(page, lambda: box.evaluate(sides) == [True, False])


VIEW = "(place) => GanttChart.all[place ?? 0].view"


def test_a_gantt_chart_zooms_by_keys_wheel_and_buttons(open_page):
    page = open_page("run", viewport={"width": 390, "height": 800})
    page.get_by_role("button", name="Zoom in this chart").press("Enter")
    canvas = page.locator("canvas")
    canvas.press("0")

    def length():
        view = page.evaluate(VIEW)
        return view["end"] - view["begin"]

    whole = length()
    canvas.press("+")
    assert length() == pytest.approx(whole / 1.5)
    before = page.evaluate(VIEW)
    canvas.press("ArrowRight")
    assert page.evaluate(VIEW)["begin"] == pytest.approx(before["begin"] + 0.2 * length())
    canvas.press("Shift+ArrowUp")
    assert page.evaluate(VIEW)["high"] < before["high"]
    page.get_by_role("button", name="Show all").click()
    assert length() == whole
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -100)
    until(page, lambda: length() < whole)
    before = page.evaluate(VIEW)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    page.mouse.up()
    assert page.evaluate(VIEW)["begin"] > before["begin"]
    assert overflow(page) <= 0


def test_a_job_of_a_gantt_chart_tells_about_itself(open_page):
    page = open_page("everything")
    page.get_by_role("button", name="Zoom in this chart").first.click()
    canvas, tip = page.locator("canvas"), page.get_by_role("status")
    canvas.press("n")
    assert tip.inner_text().split("\n") == [
        *("job 11", "user 3", "4 processors", "started at once", "ran for 1 hour")
    ]
    canvas.press("n")
    words = tip.inner_text().split("\n")
    assert words == ["job 12", "user unknown", "2 processors", "waited 1 hour", "ran for 1 hour"]
    canvas.press("Escape")
    assert not tip.is_visible()
    place = page.evaluate("[GanttChart.all[0].x(1800), GanttChart.all[0].y(2)]")
    canvas.hover(position=dict(zip("xy", place)))
    assert tip.inner_text().startswith("job 11\n")
    canvas.hover(position={"x": place[0], "y": 12})
    assert not tip.is_visible()


def test_charts_of_one_figure_show_the_same_time_and_mark_the_same_job(open_page):
    page = open_page("everything")
    page.get_by_role("button", name="Zoom in these charts").click()
    assert page.locator(".chart-name").all_inner_texts() == ["first", "second"]
    canvas = page.locator("canvas")
    canvas.nth(1).press("+")
    one, other = (page.evaluate(VIEW, place) for place in (0, 1))
    assert one == other
    assert one["end"] - one["begin"] == pytest.approx(7200.5 / 1.5)
    canvas.nth(0).press("0")
    canvas.nth(0).press("n")
    assert page.evaluate("GanttChart.all.map((chart) => chart.chosen)") == [0, 0]
    assert page.locator(".tip:visible").count() == 1
    canvas.nth(1).press("n")  # the job after it
    assert page.evaluate("GanttChart.all.map((chart) => chart.chosen)") == [1, 1]
    assert page.locator(".tip:visible").inner_text().startswith("job 12\n")
