"""Takes README's pictures of the page, light and dark, with the rig of the demo: pictures.py FOLDER"""

import os
import sys
import threading

sys.dont_write_bytecode = True
import page as pages
import rig

SCHEMES, LARGEST = ("light", "dark"), 150_000


def furnish():
    """Makes the bench look used: an app with a screen, a tunnel, a lease, agents, and a call that runs."""
    id, _ = rig.screen_app("Shopfront")
    rig.patchbay("forward", "--detach", "--endpoint", id, "tcp:8080")
    agent = rig.Agent(rig.grant("night-tests", "registry.read", "endpoint.call", "secret.use"), id, "claude-code")
    for row in range(3):
        agent.call("screenshot")
        agent.call("tap", x=100, y=150 + 112 * row)
    rig.patchbay("lease", "app-debug-demo-ipad", "--for", "30m", "--note", "checkout by hand")
    status, answer = rig.api("PUT", f"/v1/devices/{rig.TABLET}/note", {"label": "drawer 3", "note": "cracked screen"})
    assert status == 204, answer
    waiting = rig.Agent(rig.grant("release-check", "registry.read", "endpoint.call", "secret.use"), "shop-demo-iphone", "cursor")
    threading.Thread(target=waiting.call, args=("wait",), kwargs={"seconds": 20}, daemon=True).start()


def main(folder):
    furnish()
    with pages.browser() as browser:
        for scheme in SCHEMES:
            context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
            page = context.new_page()
            pages.open_page(page, rig.BASE, rig.code())
            page.wait_for_selector(".row")
            page.wait_for_timeout(1500)
            file = f"{folder}/dashboard-{scheme}.png"
            page.screenshot(path=file)
            size = os.path.getsize(file)
            assert size <= LARGEST, f"{file} has {size} bytes"
            print(f"{file}: {size} bytes", flush=True)
            context.close()
    for program in rig.programs:
        program.kill()


main(*sys.argv[1:])
