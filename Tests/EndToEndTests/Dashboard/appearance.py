"""Names of strangers stay text, nothing overflows, and axe-core finds nothing serious."""
from axe_playwright_python.sync_playwright import Axe

from page import open_page


def hostile_names(page, base, code, views=("/", "/wall")):
    """No name becomes an element, a script or a link, and none leaves its place."""
    page.on("dialog", lambda dialog: (_ for _ in ()).throw(AssertionError("a name ran as a script")))
    open_page(page, base, code)
    for view in views:
        page.evaluate("view => { location.hash = '#' + view }", view)
        page.wait_for_timeout(500)
        assert page.locator("#main img[src='x'], #main script").count() == 0
        links = page.eval_on_selector_all("a", "links => links.map(link => link.getAttribute('href'))")
        assert all(link is None or link.startswith(("#", "http://", "https://")) for link in links), links
        raw = [line for line in page.inner_text("#main").splitlines() if "\u202e" in line or "\x1b" in line]
        assert not raw, (view, raw[:3])
        no_overflow(page)


def no_overflow(page):
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "scrolls sideways"


def fits(page, base, code, views, widths=(360, 768, 1440, 3840)):
    """No view scrolls sideways at any width."""
    open_page(page, base, code)
    for view in views:
        page.evaluate("view => { location.hash = '#' + view }", view)
        page.wait_for_timeout(400)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (view, width)


def accessible(page, base, code, views):
    """axe-core finds nothing serious. In dark, only the colours differ."""
    open_page(page, base, code)
    found = []
    for scheme, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        for view in views:
            page.evaluate("view => { location.hash = '#' + view }", view)
            page.wait_for_timeout(500)
            for violation in Axe().run(page, options=options).response["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    nodes = [(node["target"], node.get("failureSummary", "")[:200]) for node in violation["nodes"][:3]]
                    found.append((scheme, view, violation["id"], nodes))
    assert not found, found


def no_layout_shift(page, base, code, limit=0.02):
    """What loads later moves nothing."""
    page.add_init_script("window.shift = 0; new PerformanceObserver(list => { for (const e of list.getEntries())"
                         " if (!e.hadRecentInput) window.shift += e.value }).observe({type: 'layout-shift', buffered: true})")
    open_page(page, base, code)
    page.wait_for_selector(".row")
    page.wait_for_timeout(2500)
    shift = page.evaluate("window.shift")
    assert shift <= limit, shift
