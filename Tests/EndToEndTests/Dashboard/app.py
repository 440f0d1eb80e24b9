"""An app: the form of a tool, its live screen, its states, and its approval."""
import json
import time

from page import open_page


def sent(page, method, part):
    """Returns a list that receives the bodies of requests with a method whose path contains a part."""
    bodies = []
    page.on("request", lambda request: bodies.append(json.loads(request.post_data or "null"))
            if request.method == method and part in request.url else None)
    return bodies


def form_of_a_tool(page, base, code, id, tool, values, expected):
    """A required field is named, and the form sends what a person fills in. `values` maps labels to texts."""
    calls = sent(page, "POST", "/call")
    open_page(page, base, code, f"/e/{id}?tab=tools")
    page.locator(".v-tool", has=page.locator(f".v-tool-name:text-is('{tool}')")).click()
    page.click("button:text-is('Call')")
    assert page.locator("[aria-invalid=true]").first.evaluate("element => element === document.activeElement")
    assert not calls
    for label, text in values.items():
        page.locator(".v-field", has=page.locator(f"label bdi:text-is('{label}')")).first.locator("input,select,textarea").fill(text)
    page.click("button:text-is('Call')")
    page.wait_for_selector(".v-output > *")
    assert calls[-1]["arguments"] == expected, calls
    # The JSON view shows the same arguments.
    page.click("button:text-is('JSON')")
    assert json.loads(page.locator(".v-form textarea").input_value()) == expected


def tap_is_exact(page, base, code, id, width, height):
    """A click is a tap at the same fraction of the picture, within half a CSS pixel, and takes a lease."""
    taps, leases = sent(page, "POST", "/screen/input"), sent(page, "POST", "/v1/leases")
    page.set_viewport_size({"width": width, "height": height})
    open_page(page, base, code, f"/e/{id}")
    # On a narrow screen it is below the cards, and starts when it is in sight.
    page.locator(".v-surface").scroll_into_view_if_needed()
    page.wait_for_selector(".v-surface:not(.is-empty)")
    picture = page.locator(".v-screen-picture")
    picture.scroll_into_view_if_needed()
    for number, (x, y) in enumerate([(0.5, 0.5), (0.03, 0.4), (0.9, 0.61)], 1):
        # The first tap adds the line of the lease, and the picture may move.
        box = picture.bounding_box()
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
        deadline = 400
        while len(taps) < number and deadline:
            page.wait_for_timeout(50)
            deadline -= 1
        tap = taps[number - 1]["tap"]
        assert abs(tap["x"] - x) * box["width"] < 0.5 and abs(tap["y"] - y) * box["height"] < 0.5, (tap, x, y)
    # An own lease that still runs is used further.
    assert len(leases) <= 1, leases
    page.wait_for_selector(".v-screen-lease >> text=You have the lease")


def tap_and_see(page, base, code, id, received):
    """A tap and a text reach the app in their order, and the next pictures show what they changed."""
    open_page(page, base, code, f"/e/{id}")
    page.wait_for_selector(".v-surface:not(.is-empty)")
    picture = page.locator(".v-screen-picture")

    def changes(act):
        before = picture.get_attribute("src")
        act()
        page.wait_for_function("before => document.querySelector('.v-screen-picture').src !== before", arg=before)

    size = picture.bounding_box()
    changes(lambda: picture.click(position={"x": size["width"] / 2, "y": size["height"] / 4}))
    changes(lambda: page.locator(".v-surface").press_sequentially("tea"))
    calls = received()
    assert [call["tool"] for call in calls] == ["tap", "type_text"] and calls[1]["arguments"] == {"text": "tea"}, calls
    tap, natural = calls[0]["arguments"], picture.evaluate("image => image.naturalWidth / image.naturalHeight")
    assert abs(tap["x"] - 195) < 2 and abs(tap["y"] - 211) < 2 and abs(natural - 390 / 844) < 0.01, (tap, natural)
    page.click(".v-screen-lease >> text=Release")


def press_keys(page, base, code, id, received):
    """Enter, Backspace, Delete and arrows reach an app whose tool presses keys."""
    open_page(page, base, code, f"/e/{id}")
    page.wait_for_selector(".v-surface:not(.is-empty)")
    page.wait_for_selector(".v-screen-lease >> text=A tap takes a lease")
    page.locator(".v-surface").focus()
    for key in ("7", "Backspace", "8", "Delete", "Enter"):
        page.keyboard.press(key)
    # The keys move the cross on the screen and leave the screen, so these have buttons.
    for key in ("Tab", "ArrowLeft"):
        page.click(f"[aria-label={key}]")
    for _ in range(200):
        typed = "".join(call["arguments"]["text"] for call in received())
        if len(typed) == 7:
            break
        page.wait_for_timeout(50)
    assert typed == "7\b8\x7f\n\t\uf702", typed
    page.click(".v-screen-lease >> text=Release")


def give_a_token(page, base, code, id, token):
    """A token is typed once, the app accepts it, and the page never has it again."""
    open_page(page, base, code, f"/e/{id}")
    page.fill("[aria-label='Token of the app']", token)
    page.click("text=Store the token")
    page.wait_for_selector("text=The app accepts the token.")
    page.wait_for_selector("text=held for")
    assert token not in page.content() and not page.locator("[aria-label='Token of the app']").input_value()


def looking_takes_no_lease(page, base, code, id):
    """The picture is refreshed, at most twice a second, without a lease, and not while the page is hidden."""
    leases, pictures = sent(page, "POST", "/v1/leases"), []
    page.on("request", lambda request: pictures.append(request.url) if "/screen/picture" in request.url else None)
    open_page(page, base, code, f"/e/{id}")
    page.wait_for_selector(".v-surface:not(.is-empty)")
    before = len(pictures)
    page.wait_for_timeout(5000)
    assert 1 <= len(pictures) - before <= 11, len(pictures) - before
    assert not leases


def many_viewers(page, base, code, id, received, watch, tabs=4, seconds=4):
    """Tabs, and other clients that look as tabs do, see new pictures, for which the app takes one screenshot at a time.

    `watch` starts the other clients, and returns a function that ends them and returns what each one was answered.
    """
    open_page(page, base, code, f"/e/{id}")
    pages = [page] + [page.context.new_page() for _ in range(tabs - 1)]
    answers = [[] for _ in pages]
    for tab, seen in zip(pages, answers):
        tab.on("response", lambda response, seen=seen: seen.append(response.status) if "/screen/picture" in response.url else None)
        if tab != page:
            tab.goto(f"{base}/#/e/{id}", wait_until="commit")
    for tab in pages:
        tab.wait_for_selector(".v-surface:not(.is-empty)", timeout=90000)
    end, before, began = watch(), len(received()), time.monotonic()
    for seen in answers:
        seen.clear()
    page.wait_for_timeout(seconds * 1000)
    shots, passed = received()[before:], time.monotonic() - began
    answers += end()
    assert all(answers) and {status for seen in answers for status in seen} <= {200, 304}, answers
    assert {shot["at once"] for shot in received()} == {1}, received()
    assert 1 <= len(shots) <= 2 * passed + 1, (len(shots), passed)


def leased_by_another(page, base, code, id, holder):
    """The screen of a leased phone shows, says who has it, and a tap explains itself."""
    open_page(page, base, code, f"/e/{id}")
    page.wait_for_selector(f".v-screen-lease.is-other >> text={holder}")
    page.wait_for_selector(".v-surface:not(.is-empty)")
    page.locator(".v-surface").click()
    page.wait_for_selector(".notice-problem")


def states(page, base, code, id, action):
    """Two states are compared, and the keys step through them."""
    open_page(page, base, code, f"/e/{id}?tab=states")
    page.wait_for_selector(".v-state[data-role=newer]")
    state = page.locator(".v-state", has=page.locator(f"text={action}")).first
    state.click()
    page.wait_for_selector(".v-diff-table tbody tr")
    number = page.locator(".v-diff h2").inner_text()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("before => document.querySelector('.v-diff h2').textContent !== before", arg=number)


def deny(page, base, code, id, address):
    """Deny asks once and names the address. The app then waits for nothing, and Approve still works."""
    open_page(page, base, code, f"/e/{id}")
    page.get_by_role("button", name=f"Deny {id}").click()
    assert address in page.locator("dialog").inner_text()
    page.locator("dialog").get_by_role("button", name="Deny", exact=True).click()
    page.wait_for_selector(f"text={id} is denied.")
    page.wait_for_selector(".v-card-body .state >> text=denied")
    page.wait_for_selector(".v-sub >> text=/^by .+, (now|\\d+ s ago)$/")
    page.goto(f"{base}/#/access")
    page.wait_for_selector("h2:text-is('Approvals')")
    assert not page.locator(".v-request", has_text=id).count()


def approve(page, base, code, id, address):
    """The button names the address that is approved."""
    approvals = sent(page, "PUT", "/approval")
    open_page(page, base, code, f"/e/{id}")
    page.click(f"text=Approve {address}")
    page.wait_for_selector(f"text=Approved: {address}")
    assert approvals == [{"address": address.split("%")[0]}], approvals


def pages_of_a_browser(page, base, code, id, port, open_tab, close_tab, forward):
    """The card follows the tabs of a real browser while a person looks, their names stay text, and a tunnel changes the URLs."""
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/pages") else None)
    open_page(page, base, code, f"/e/{id}")
    card = page.locator("section.card", has=page.locator("h2:text-is('Pages')"))
    card.locator("li >> text=about:blank").first.wait_for()
    # Chromium escapes titles for HTML, and not URLs.
    tab = open_tab("data:text/html;charset=utf-8,%3Ctitle%3E%E2%80%AEevil%3C/title%3E%3Cimg%20src=x%20onerror=alert(1)%3E")
    found = card.locator("li", has_text="\ufffdevil")
    found.wait_for()
    assert "<img src=x onerror=alert(1)>" in found.inner_text() and not page.locator("#main img[src='x']").count()
    url = f"ws://127.0.0.1:{port}/devtools/page/{tab}"
    assert found.locator("code").inner_text() == url
    found.locator(".copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == url
    other = forward()
    card.locator("li code", has_text=f"ws://{other}/devtools/page/{tab}").wait_for()
    close_tab(tab)
    found.wait_for(state="detached")
    page.click("role=tab[name=Activity]")
    page.wait_for_timeout(500)
    count = len(asked)
    page.wait_for_timeout(3000)
    assert len(asked) == count, "a card that nobody looks at asks"
