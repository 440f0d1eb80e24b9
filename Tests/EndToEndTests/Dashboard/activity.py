"""The activity: a filter in the address, keys, pictures before and after, and what arrives by itself."""
from page import open_page


def rows(page):
    return page.locator(".v-rows .v-call").count()


def filter_in_the_address(page, base, code, outcome):
    """A filter shows only its rows, and survives a reload."""
    open_page(page, base, code, "/activity")
    page.wait_for_selector(".v-rows .v-call", state="attached")
    everything = rows(page)
    page.select_option("select[aria-label='All outcomes']", outcome)
    page.wait_for_function("n => document.querySelectorAll('.v-rows .v-call').length < n", arg=everything)
    assert set(page.locator(".v-rows .state > span").all_text_contents()) == {outcome}
    page.reload()
    page.wait_for_selector(".v-rows .v-call", state="attached")
    assert set(page.locator(".v-rows .state > span").all_text_contents()) == {outcome}
    page.click("button:text-is('Clear')")


def step_with_keys(page, base, code):
    """k and j and the arrows select entries in turn, from the newest on, and Esc closes the details."""
    open_page(page, base, code, "/activity")
    page.wait_for_selector(".v-rows .v-call", state="attached")
    page.keyboard.press("k")
    first = page.locator("[role=option][aria-selected=true]").get_attribute("data-id")
    for key in ("k", "ArrowUp", "k"):
        page.keyboard.press(key)
    earlier = page.locator("[role=option][aria-selected=true]").get_attribute("data-id")
    assert int(earlier) < int(first)
    for key in ("j", "ArrowDown", "j"):
        page.keyboard.press(key)
    assert page.locator("[role=option][aria-selected=true]").get_attribute("data-id") == first
    assert page.locator(".v-detail").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector(".v-detail", state="hidden")


def pictures_side_by_side(page, base, code, tool):
    """A call between two screenshots of an app shows both."""
    open_page(page, base, code, f"/activity?tool={tool}")
    page.wait_for_selector(".v-rows .v-call", state="attached")
    for _ in range(rows(page)):
        page.keyboard.press("k")
        page.wait_for_timeout(150)
        if page.locator(".v-pair .v-picture-frame img").count() == 2:
            return
    raise AssertionError(f"no call of {tool} has both pictures")


def arrives_by_itself(page, base, code, call):
    """A call of an agent appears without a reload. `call` makes one."""
    open_page(page, base, code, "/activity")
    page.wait_for_selector(".v-rows .v-call", state="attached")
    before = page.locator(".v-rows .v-call").last.get_attribute("data-id")
    call()
    page.wait_for_function("id => [...document.querySelectorAll('.v-rows .v-call')].at(-1).dataset.id !== id", arg=before)
