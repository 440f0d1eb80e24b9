"""What a person decides: requests, invites, grants, tunnels and leases. Each destructive act asks once."""
from page import open_page


def answer_a_request(page, base, code, name, verb="Approve"):
    """A request shows as a notice on any page, and is answered there."""
    open_page(page, base, code, "/tunnels")
    notice = page.locator(".v-notice", has_text=name)
    notice.wait_for()
    notice.get_by_role("button", name=verb, exact=True).click()
    notice.wait_for(state="detached")


def give_less(page, base, code, name, scope, app):
    """The form for a part of a request has what the request asks for, and gives what a person leaves there."""
    open_page(page, base, code, "/access")
    card = page.locator(".v-request", has_text=name)
    card.get_by_role("button", name="Give less…").click()
    page.uncheck(f"dialog input[value='{scope}']")
    page.select_option("dialog select", app)
    page.locator("dialog").get_by_role("button", name="Approve").click()
    page.wait_for_selector("dialog", state="detached")
    card.wait_for(state="detached")


def invite_and_join(page, base, code, client, join):
    """An invite has a QR code and a countdown, and the client that joins appears in it. `join` gets the code."""
    open_page(page, base, code, "/access")
    page.click("text=Invite…")
    page.click("text=Create the invite")
    page.wait_for_selector(".v-qr")
    page.wait_for_selector(".v-joined >> text=Waiting for the client…")
    join(page.locator(".v-secret").inner_text())
    page.wait_for_selector(f".v-join >> text={client}")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def revoke(page, base, code, grant):
    """Cancel keeps the grant. The question names it, and the button of the question ends it."""
    open_page(page, base, code, "/access")
    row = page.locator(".v-grants tbody tr", has=page.locator(f"bdi:text-is('{grant}')")).first
    row.get_by_role("button", name="Revoke").click()
    assert grant in page.locator("dialog").inner_text()
    page.click("dialog >> text=Cancel")
    row.get_by_role("button", name="Revoke").click()
    page.locator("dialog").get_by_role("button", name="Revoke").click()
    row.wait_for(state="detached")


def tunnel(page, base, code, endpoint):
    """A tunnel is created, shows its address, and is removed after one question."""
    open_page(page, base, code, "/tunnels")
    page.wait_for_selector(".v-tunnels tbody tr, .empty")
    before = page.locator(".v-tunnels tbody tr").count()
    page.click("text=New tunnel…")
    page.select_option("dialog select", f"e {endpoint}")
    page.click("text=Create the tunnel")
    page.wait_for_selector("dialog >> text=The tunnel is open")
    page.keyboard.press("Escape")
    page.wait_for_function("n => document.querySelectorAll('.v-tunnels tbody tr').length === n", arg=before + 1)
    page.locator(".v-tunnels tbody tr").last.get_by_role("button", name="Remove").click()
    page.locator("dialog").get_by_role("button", name="Remove").click()
    page.wait_for_function("n => document.querySelectorAll('.v-tunnels tbody tr').length === n", arg=before)


def lease(page, base, code, endpoint):
    """A lease is taken with a note, and ended."""
    open_page(page, base, code, "/leases")
    page.click("text=Take a lease…")
    page.select_option("dialog select >> nth=0", endpoint)
    page.fill("dialog input[type=text]", "a look by hand")
    page.click("text=Take the lease")
    own = page.locator(".v-lease.is-own", has_text=endpoint)
    own.wait_for()
    assert "a look by hand" in own.inner_text()
    own.get_by_role("button", name="End", exact=True).click()
    own.wait_for(state="detached")


def watch_a_lease(page, base, code, endpoint, holder, take):
    """A lease of another client appears by itself, with its holder, and breaking it asks once."""
    open_page(page, base, code, "/leases")
    take()
    card = page.locator(".v-lease", has_text=endpoint)
    card.wait_for()
    assert holder in card.inner_text()
    card.get_by_role("button", name="Break").click()
    assert holder in page.locator("dialog").inner_text()
    page.locator("dialog").get_by_role("button", name="Break the lease").click()
    card.wait_for(state="detached")


def queue_for_a_lease(page, base, code, endpoint, take, end):
    """A person waits for a phone that an agent has, gets it in turn, and leaves it to the next one.

    `take` takes the lease for a client or waits for it, and returns a function that awaits it; `end` ends a lease.
    """
    open_page(page, base, code, "/leases")
    held = take("first")()
    card = page.locator(".v-lease", has_text=endpoint)
    card.get_by_text("first").wait_for()
    page.click("text=Take a lease…")
    page.select_option("dialog select >> nth=0", endpoint)
    page.check("dialog input[type=checkbox]")
    page.click("text=Take the lease")
    page.wait_for_selector("dialog >> text=Waiting for your turn…")
    card.get_by_text("1 waiting").wait_for()
    next = take("second")
    card.get_by_text("2 waiting").wait_for()
    assert "first" in card.inner_text() and "second" not in card.inner_text()
    end("first", held["id"])
    page.wait_for_selector("dialog", state="detached")
    card.get_by_text("You", exact=True).wait_for()
    card.get_by_text("1 waiting").wait_for()
    card.get_by_role("button", name="End", exact=True).click()
    card.get_by_text("second").wait_for()
    end("second", next()["id"])
    card.wait_for(state="detached")
