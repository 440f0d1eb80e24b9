"""The page in Chromium as a person uses it, against the rig of the demo: scenes.py [NAME …]

Runs in the work folder of `demo/run --kinds --then`. Prints one line for each scene, and fails if one failed.
"""

import os
import re
import socket
import sys
import time
import traceback

sys.dont_write_bytecode = True
import activity
import app
import appearance
import bench
import connection
import decisions
import device
import foreign
import page as pages
import rig
import team
from rig import BASE, PHONE, code

SHOP, DESK = "shop-demo-iphone", "desk-desk"
# The browser reports each refused request, and some scenes are about refusals.
REFUSALS = "Failed to load resource"


class Bench:
    """What all scenes find: apps with screens, an app that wants a token, and an agent with ten calls."""

    def __init__(self):
        self.screen, self.received = rig.screen_app("Shopfront")
        self.token = "5ec2e7" * 10
        port = rig.app("bank.log", f"{rig.SUPPORT}/sampleapp.py", "--mode", "ios", "--token", self.token, "--bundle", "com.example.bank")
        self.bank = rig.add("Bank", port, "--kind", "appreveal", "--app", "com.example.bank")
        self.hostile, _ = rig.screen_app("<img src=x onerror=alert(1)>", "hostile")
        scopes = ("registry.read", "endpoint.call", "secret.use")
        self.grant = rig.grant("night-tests", *scopes)
        self.agent = rig.Agent(self.grant, self.screen, "tester")
        hostile = rig.Agent(rig.grant("<b>bold</b>\u202e", *scopes), self.hostile, "\u001b[31m<script>alert(1)</script>")
        hostile.call("cart", count=1, note="<img src=x onerror=alert(1)>")
        hostile.call("screenshot")
        self.ten_calls()
        # Rows that arrive later would move those that a scene counts and compares.
        rig.settle()

    def ten_calls(self):
        for row in range(3):
            self.agent.call("screenshot")
            self.agent.call("tap", x=100, y=150 + 112 * row)
            self.agent.call("screenshot")
        self.agent.call("type_text", text="two boxes of tea")

    def take_lease(self):
        status, lease = rig.api("POST", "/v1/leases", {"endpoint": SHOP, "seconds": 60, "note": "nightly run"}, self.grant)
        assert status in (200, 201), lease


def join(text):
    rig.patchbay("join", "-", "--name", "build-server", text=text + "\n")


def asks(page, bench_):
    wait = rig.request_access("helper")
    decisions.answer_a_request(page, BASE, code(), "helper")
    assert wait()["state"] == "granted"
    wait = rig.request_access("visitor", ["registry.read", "endpoint.call"])
    decisions.give_less(page, BASE, code(), "visitor", "endpoint.call", SHOP)
    part = wait()["granted"]["grant"]["permissions"]
    assert part == {"scopes": ["registry.read"], "selector": {"endpoints": [SHOP]}}, part


def used_code(page, bench_):
    used = code()
    first = page.context.browser.new_context().new_page()
    pages.open_page(first, BASE, used)
    first.close()
    connection.code_leaves_the_address(page, BASE, code(), used)


def first_paint(page, bench_):
    """The page is painted. The time is measured in the browser, without the start of a process, and printed."""
    pages.open_page(page, BASE, code())
    times = []
    for _ in range(5):
        page.reload()
        page.wait_for_selector(".row")
        paint = page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        times.append(paint.json_value())
    print(f"first paint: {sorted(round(time) for time in times)} ms", flush=True)
    assert all(time > 0 for time in times), times


def revoke(page, bench_):
    token = rig.grant("old-agent", "registry.read")
    decisions.revoke(page, BASE, code(), "old-agent")
    assert rig.api("GET", "/v1/endpoints", token=token)[0] == 401


def hostile(page, bench_):
    views = ("/", f"/e/{bench_.hostile}", f"/e/{bench_.hostile}?tab=tools", "/activity", "/access", "/leases", "/use", "/wall")
    appearance.hostile_names(page, BASE, code(), views)


def other_pages(page, _):
    lists = ("endpoints", "leases", "tunnels", "invites", "grants")

    def state():
        return {name: sorted(each["id"] for each in rig.api("GET", f"/v1/{name}")[1][name]) for name in lists}
    foreign.other_pages(page, BASE, code(), code(), state)
    foreign.rebinding(page, "evil.test", 7282)


def report(page, bench_):
    rig.patchbay("activity", "--html", "report.html")
    texts = ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<b>bold</b>", "javascript:alert(1)", "x" * 1000]
    appearance.hostile_report(page, os.path.abspath("report.html"), texts)


def web_pages(page, _):
    port = rig.web_browser()
    id = rig.add("Chrome", port, "--kind", "web")

    def forward():
        return rig.patchbay("forward", "tcp:0", "--endpoint", id, "--detach").split()[-1].removeprefix("http://")
    app.pages_of_a_browser(page, BASE, code(), id, port, lambda url: rig.tab(port, "new", url)["id"],
                           lambda tab: rig.tab(port, "close", tab), forward)
    appearance.accessible(page, BASE, code(), (f"/e/{id}",))
    appearance.fits(page, BASE, code(), (f"/e/{id}",), (360,))


def viewers(page, _):
    id, received = rig.screen_app("Slow", "slow")
    app.many_viewers(page, BASE, code(), id, received, lambda: rig.watch(id, 16))


def queue(page, _):
    tokens = {}

    def take(client):
        tokens[client] = rig.grant(client, "registry.read", "endpoint.call")
        asked = {"endpoint": SHOP, "seconds": 60, "waitSeconds": 120}
        return rig.later(lambda: rig.api("POST", "/v1/leases", asked, tokens[client])[1])
    decisions.queue_for_a_lease(page, BASE, code(), SHOP, take, lambda client, id: rig.api("DELETE", f"/v1/leases/{id}", token=tokens[client]))


def service_worker(page, _):
    def fresh_code():
        rig.start_broker()
        return rig.eventually(rig.code_if_ready)
    rig.stop_broker()
    # The kernel closes the port after the last thread.
    rig.eventually(lambda: socket.socket().connect_ex(("127.0.0.1", 7282)))
    foreign.service_worker(page, BASE, fresh_code)


def other_host(page, bench_):
    team.start()
    team.foreign_host(page, bench_.screen, bench_.received, PHONE)


def views(bench_):
    return ("/", f"/e/{bench_.screen}", f"/e/{SHOP}?tab=tools", f"/d/{PHONE}", "/activity", "/access", "/tunnels", "/leases", "/use", "/wall")


# Each with True if the browser may report a refused request.
SCENES = {
    "a code works once": (used_code, True),
    "other pages": (other_pages, True),
    "first paint": (first_paint, False),
    "transfer": (lambda page, _: connection.loads_compressed_and_once(page, BASE, code(), 150_000), False),
    "no layout shift": (lambda page, _: appearance.no_layout_shift(page, BASE, code()), False),
    "search": (lambda page, _: bench.search_and_clear(page, BASE, code(), "devicekit"), False),
    "keys": (lambda page, _: bench.keys(page, BASE, code()), False),
    "groups": (lambda page, _: bench.group(page, BASE, code()), False),
    "tabs": (lambda page, _: connection.many_tabs_share_one_stream(page, BASE, code(), 7), False),
    "plug": (lambda page, _: device.plug(page, BASE, code(), "Demo iPhone", rig.unplug, rig.plug_in), False),
    "label": (lambda page, _: bench.label_a_phone(page, BASE, code(), PHONE), False),
    "phone": (lambda page, _: device.take_and_release(page, BASE, code(), PHONE), False),
    "deny": (lambda page, _: app.deny(page, BASE, code(), DESK, "127.0.0.1"), False),
    "approve": (lambda page, _: app.approve(page, BASE, code(), DESK, "127.0.0.1%lo"), False),
    "token": (lambda page, it: app.give_a_token(page, BASE, code(), it.bank, it.token), True),
    "form": (lambda page, it: app.form_of_a_tool(page, BASE, code(), it.screen, "cart", {"count": "2", "note": "tea"}, {"count": 2, "note": "tea"}), False),
    "states": (lambda page, _: app.states(page, BASE, code(), "debug-app-127-0-0-1", "pay"), False),
    "web pages": (web_pages, False),
    "looking": (lambda page, it: app.looking_takes_no_lease(page, BASE, code(), it.screen), False),
    "viewers": (viewers, False),
    "tap": (lambda page, it: app.tap_and_see(page, BASE, code(), it.screen, tapped(it)), False),
    "press keys": (lambda page, it: app.press_keys(page, BASE, code(), it.screen, tapped(it)), False),
    "exact taps": (lambda page, it: app.tap_is_exact(page, BASE, code(), it.screen, 360, 740), False),
    "request": (asks, False),
    "invite": (lambda page, _: decisions.invite_and_join(page, BASE, code(), "build-server", join), False),
    "revoke": (revoke, False),
    "tunnel": (lambda page, _: decisions.tunnel(page, BASE, code(), SHOP), False),
    "own lease": (lambda page, it: decisions.lease(page, BASE, code(), it.bank), False),
    "other lease": (lambda page, it: decisions.watch_a_lease(page, BASE, code(), SHOP, "night-tests", it.take_lease), False),
    "queue": (queue, False),
    "timeline": (lambda page, _: activity.step_with_keys(page, BASE, code()), False),
    "pictures": (lambda page, _: activity.pictures_side_by_side(page, BASE, code(), "tap"), False),
    "new call": (lambda page, it: activity.arrives_by_itself(page, BASE, code(), lambda: it.agent.call("screenshot")), False),
    "hostile names": (hostile, False),
    "report": (report, False),
    "narrow": (lambda page, it: appearance.fits(page, BASE, code(), views(it), (360,)), False),
    "axe": (lambda page, it: appearance.accessible(page, BASE, code(), views(it)), False),
    "restart": (lambda page, _: connection.disconnected_and_back(page, BASE, code(), rig.stop_broker, rig.start_broker), True),
    "service worker": (service_worker, False),
    "other host": (other_host, True),
}


def tapped(bench_):
    """Returns a function that reads the calls which the app receives from now on."""
    before = len(bench_.received())
    return lambda: [call for call in bench_.received()[before:] if call["tool"] != "screenshot"]


def play(browser, name, bench_):
    scene, may_be_refused = SCENES[name]
    context = browser.new_context(viewport={"width": 1440, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(30000)
    page, began = context.new_page(), time.monotonic()
    errors = pages.collect_errors(page)
    # For work on the page: its files of this folder, instead of those in the broker.
    if folder := os.environ.get("PAGE"):
        context.route(re.compile(r"/dashboard/\w+/.+\.(js|css)$"), lambda route: route.fulfill(
            path=f"{folder}/{route.request.url.rsplit('/', 1)[1]}", headers={"Cross-Origin-Resource-Policy": "same-origin"}))
    try:
        scene(page, bench_)
        wrong = [error for error in errors if not (may_be_refused and REFUSALS in error)]
        assert not wrong, wrong
        print(f"ok: {name} ({time.monotonic() - began:.1f} s)", flush=True)
        return True
    except Exception as error:
        place = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename][-1]
        file = os.path.basename(place.filename)
        print(f"FAILED: {name}: {file}:{place.lineno} ({place.name}): {error!r:.1200} {errors[:3]}", flush=True)
        return False
    finally:
        context.close()


def main():
    try:
        bench_ = Bench()
        with pages.browser() as browser:
            played = [play(browser, name, bench_) for name in sys.argv[1:] or SCENES]
        sys.exit(not all(played))
    finally:
        for program in rig.programs:
            program.kill()


if __name__ == "__main__":
    main()
