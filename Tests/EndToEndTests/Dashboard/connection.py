"""Sign-in and the event stream: codes, sessions of several tabs, and a broker that goes away and returns."""
import re
import urllib.request

from page import open_page


def code_leaves_the_address(page, base, code, used_code):
    """The code is exchanged, the view that was asked for stays, and the history has no code."""
    open_page(page, base, code, "/d/some-phone")
    assert page.url.endswith("#/d/some-phone"), page.url
    assert page.evaluate("sessionStorage.length") > 0
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("history.length") <= 2
    other = page.context.browser.new_context().new_page()
    other.goto(f"{base}/#code={used_code}")
    other.wait_for_selector(".sign-in")
    assert "code" in other.locator(".v-error").inner_text()
    assert "code=" not in other.url
    other.close()


def session_of_another_tab(page, base, code):
    """A new tab gets the session of the first one, and its address survives."""
    open_page(page, base, code)
    other = page.context.new_page()
    other.goto(f"{base}/#/d/some-phone")
    other.wait_for_selector("#top:not([hidden])")
    assert other.url.endswith("#/d/some-phone")
    other.close()


def wait_for_all_files(page, folder="dashboard/"):
    """Waits for the views that the page has not shown, which it loads two seconds later. Returns an expression for its files."""
    files = f"performance.getEntriesByType('resource').filter(({{name}}) => name.includes('{folder}'))"
    page.wait_for_function(f"() => {files}.some(({{name}}) => name.endsWith('/wall.js')) && {files}.length >= 34")
    return files


def loads_compressed_and_once(page, base, code, limit):
    """A browser loads all files with at most `limit` bytes, and takes each one from its cache the next time."""
    with urllib.request.urlopen(f"{base}/") as answer:
        folder = re.search(r"dashboard/\w+/", answer.read().decode())[0]
        assert "Content-Encoding" not in answer.headers and answer.headers["Vary"] == "Accept-Encoding"
    open_page(page, base, code)
    files = wait_for_all_files(page, folder)
    sizes = page.evaluate(f"() => {files}.map(one => [one.transferSize, one.encodedBodySize, one.decodedBodySize])")
    transfer, encoded, decoded = (sum(column) for column in zip(*sizes))
    print(f"page: {decoded} bytes, {encoded} compressed, {transfer} with headers", flush=True)
    assert encoded < decoded / 2 and transfer <= limit, sizes
    page.reload()
    page.wait_for_function(f"() => {files}.length >= 20")
    again = page.evaluate(f"() => {files}.map(one => one.transferSize)")
    assert not any(again), again


def many_tabs_share_one_stream(page, base, code, count=9):
    """The ninth tab loads, although a browser opens six connections to an origin."""
    open_page(page, base, code)
    tabs = [page.context.new_page() for _ in range(count)]
    for tab in tabs:
        tab.goto(f"{base}/#/")
        tab.wait_for_selector(".row")
    for tab in tabs:
        tab.close()


def disconnected_and_back(page, base, code, stop, start):
    """The page says which time it shows, keeps its rows, and returns without a reload."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    wait_for_all_files(page)  # a file that a killed broker does not send is an error in the console
    before = page.locator(".row").count()
    stop()
    page.wait_for_selector("#connection >> text=Disconnected, showing the state of")
    assert page.locator(".row").count() == before
    start()
    page.wait_for_selector("#connection >> text=Disconnected", state="detached")
    page.wait_for_function("n => document.querySelectorAll('.row').length >= n", arg=before - 1)


def sign_out_everywhere(page, base, code):
    """Signing out ends the session in every tab that shares it, and nothing of the bench stays."""
    open_page(page, base, code)
    other = page.context.new_page()
    other.goto(f"{base}/#/")
    other.wait_for_selector(".row")
    page.click("text=Sign out")
    for tab in (page, other):
        tab.wait_for_selector(".sign-in")
        assert tab.locator(".row").count() == 0
        assert tab.evaluate("sessionStorage.getItem('patchbay.session')") is None
    other.close()


def waiting_tab_signs_in(page, base, code):
    """A tab that shows the sign-in for an app's address signs in when another tab does."""
    page.goto(f"{base}/#/d/some-phone")
    page.wait_for_selector(".sign-in")
    other = page.context.new_page()
    open_page(other, base, code)
    page.wait_for_selector("#top:not([hidden])")
    assert page.url.endswith("#/d/some-phone")
    other.close()


def another_session_in_the_same_tab(page, base, code, limited_code):
    """A session with fewer rights shows nothing of the session before it."""
    open_page(page, base, code)
    page.wait_for_selector(".agent")
    open_page(page, base, limited_code)
    page.wait_for_selector(".account-name >> text=limited")
    page.wait_for_selector(".row")
    assert page.locator(".agent").count() == 0
    assert page.locator("#nav >> text=Access").count() == 0
