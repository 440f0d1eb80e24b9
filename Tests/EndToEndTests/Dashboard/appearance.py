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


REPORT = set("html head meta title style body h1 dl dt dd ol li div span time bdi pre figure img figcaption".split())


def hostile_report(page, file, texts):
    """In the exported report the texts of strangers are text: no element, script, link or request comes of them."""
    requests = []
    page.on("dialog", lambda dialog: (_ for _ in ()).throw(AssertionError("a name ran as a script")))
    page.on("request", lambda request: requests.append(request.url) if not request.url.startswith("data:image/") else None)
    page.goto(f"file://{file}")
    elements, attributes = page.evaluate("""() => {
        const all = [...document.querySelectorAll('*')];
        return [all.map(one => one.localName), all.flatMap(one => one.getAttributeNames())];
    }""")
    assert set(elements) <= REPORT, set(elements) - REPORT
    allowed = {"lang", "charset", "http-equiv", "content", "name", "id", "class", "datetime", "width", "alt", "src"}
    assert set(attributes) <= allowed, set(attributes) - allowed
    text = page.inner_text("body")
    missing = [each for each in texts if each not in text]
    assert not missing, (missing, text[:1000])
    assert not any(sign in page.content() for sign in "\u202e\x1b"), "a sign turns or colours the text around it"
    assert page.evaluate("[...document.images].length && [...document.images].every(image => image.naturalWidth)")
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        no_overflow(page)
    assert requests == [page.url], requests


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
            fields = "[...document.querySelectorAll('.v-typing input')].filter(field => field.offsetWidth)"
            assert page.evaluate(f"{fields}.every(field => field.offsetWidth > 120)"), (view, width, "no room to type")
    page.set_viewport_size({"width": 360, "height": 900})
    page.evaluate("location.hash = '#/access'")
    page.wait_for_function("document.querySelector('#nav [aria-current]')?.getBoundingClientRect().right <= innerWidth")


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
