"""What all tests of the page share: opening it signed in, and collecting what the browser complains about."""
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium-headless-shell"


@contextmanager
def browser():
    """Yields a Chromium; as root it has no sandbox, a container may have a small /dev/shm, and evil.test leads to this machine."""
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP evil.test 127.0.0.1"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


def collect_errors(page):
    """Returns a list that receives console errors, CSP reports and uncaught exceptions of a page."""
    errors = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


def open_page(page, base, code, view="/"):
    """Opens a view with a one-time code, and waits until the code has left the address."""
    page.goto(f"{base}/#code={code}&view={view.replace('?', '%3F').replace('&', '%26')}")
    page.wait_for_function("() => !location.hash.includes('code=')")
    page.wait_for_selector("#top:not([hidden])", state="attached")  # the wall hides it
