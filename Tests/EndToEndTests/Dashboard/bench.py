"""The bench: search, filter, groups, keys, and rows that change by themselves."""
import time

from page import open_page


def rows(page):
    return page.locator(".row").count()


def ids(page):
    # The text of a row that is scrolled away is not rendered (content-visibility), but it is in the document.
    return page.locator(".row .row-id").all_text_contents()


def search_and_clear(page, base, code, word):
    """`/` focuses the search, words filter the rows and survive a reload, and Esc clears them."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    before = rows(page)
    page.keyboard.press("/")
    page.keyboard.type(word)
    page.wait_for_function("before => document.querySelectorAll('.row').length < before", arg=before)
    assert all(word in id for id in ids(page)), ids(page)
    assert f"q={word}" in page.url
    page.reload()
    page.wait_for_selector(".row")
    assert page.locator("[data-search]").input_value() == word
    page.focus("[data-search]")
    page.keyboard.press("Escape")
    page.wait_for_function("before => document.querySelectorAll('.row').length >= before", arg=before)


def filter_by_state(page, base, code, state):
    """A chip shows its number of rows and filters by its state."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    chip = page.locator(".filter-chip", has_text=state)
    number = int(chip.locator(".number").inner_text())
    chip.click()
    page.wait_for_function("n => document.querySelectorAll('.row').length === n", arg=number)
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()


def group(page, base, code):
    """Every grouping shows the same endpoints."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    before = sorted(ids(page))
    for by in ("app", "kind", "state", "none", "device"):
        page.select_option("select[aria-label=Group]", by)
        page.wait_for_function("n => document.querySelectorAll('.row').length === n", arg=len(before))
        assert sorted(ids(page)) == before, by


def keys(page, base, code):
    """j and k step through the rows, Enter opens one, g b returns, and ? shows the keys."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("j")
    second = page.evaluate("document.activeElement.getAttribute('href')")
    assert first != second
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.getAttribute('href')") == first
    page.keyboard.press("Enter")
    page.wait_for_function("href => location.hash === href", arg=first)
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_function("() => location.hash === '#/'")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")


def focus_survives_changes(page, base, code, seconds=3):
    """Rows that change around the focused one do not take its focus."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    page.keyboard.press("j")
    page.keyboard.press("j")
    focused = page.evaluate("document.activeElement.getAttribute('href')")
    page.wait_for_timeout(seconds * 1000)
    assert page.evaluate("document.activeElement.getAttribute('href')") == focused


def label_a_phone(page, base, code, udid):
    """A label and a note are saved, and the bench shows them."""
    open_page(page, base, code, f"/d/{udid}")
    label = f"drawer {time.time_ns() % 1000000}"
    page.get_by_label("Label", exact=True).fill(label)
    page.get_by_label("Note", exact=True).fill("new battery")
    page.click("text=Save")
    page.wait_for_selector("text=Saved.")
    page.evaluate("location.hash = '#/'")
    page.wait_for_selector(f".section-head >> text={label}")
    page.wait_for_selector(".section-head >> text=new battery")
