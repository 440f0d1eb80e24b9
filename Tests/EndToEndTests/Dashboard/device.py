"""The page of a phone: its lease, and the lines that connect a tool to it."""
from page import open_page


def take_and_release(page, base, code, udid):
    """The page takes a lease, shows it on the bench, and releases it."""
    open_page(page, base, code, f"/d/{udid}")
    page.click("text=Take for 30 minutes")
    page.wait_for_selector(".lease-box >> text=(you)")
    page.evaluate("location.hash = '#/'")
    page.wait_for_selector(".section-head .lease >> text=(you)")
    page.go_back()
    page.click("text=Release")
    page.wait_for_selector("text=Take for 30 minutes")


def connect_lines(page, base, code, udid):
    """Each line names the phone, and its button copies it."""
    open_page(page, base, code, f"/d/{udid}")
    for line in page.locator(".connect-line").all():
        line.locator("summary").click()
        text = line.locator("code").inner_text()
        assert udid in text, text
        line.locator(".copy").click()
        assert page.evaluate("navigator.clipboard.readText()") == text


def plug(page, base, code, name, unplug, plug_in):
    """The bench shows that a phone is pulled, and that it is back."""
    open_page(page, base, code)
    head = f".section-head:has-text('{name}')"
    page.wait_for_selector(head)
    unplug()
    page.wait_for_selector(f"{head} >> text=not attached")
    plug_in()
    page.wait_for_selector(f"{head} >> text=not attached", state="detached")
