"""The page of a study, in a browser."""

from __future__ import annotations

from optsched.cli import run as optsched


def test_the_page_of_a_study_is_whole(browser, tmp_path, capsys):
    folder = tmp_path / "study"
    assert optsched(["study", "guim-2009", "--quick", "--workers", "1", "-o", str(folder)]) == 0
    capsys.readouterr()
    context = browser.new_context()
    context.set_offline(True)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((folder / "report.html").as_uri())
    pictures = page.locator("img")
    drawn = pictures.evaluate_all("all => all.map((i) => [i.naturalWidth > 0, i.alt.length > 0])")
    assert len(drawn) == 3
    assert all(width and alt for width, alt in drawn)
    assert page.locator(".verdict").count() == 0  # nothing is judged by a quick look
    assert page.locator("table").count() == 14
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert errors == []
    context.close()
