"""A second host of a team, whose page shows the phones and apps of the first one: the broker of the rig."""
import os

import rig
from page import open_page

HOST, OTHER = "desk", "lab"
BASE, SOCKET = "http://127.0.0.1:7283", f"{os.getcwd()}/lab.sock"
ETCD = "https://127.0.0.1:2379"


def configuration(port):
    return f'[team]\nlisten = "127.0.0.1:{port}"\naddresses = ["127.0.0.1:{port}"]\n'


def start_lab():
    program = rig.start("lab.log", "patchbayd", "--config", "lab.toml", "--socket", SOCKET, "--state-directory",
                        f"{os.getcwd()}/lab")
    rig.await_broker(SOCKET)
    return program


def restart_desk():
    rig.stop_broker()
    rig.start_broker()


def start():
    """Makes the broker of the rig the first host of a team with an etcd, and lets a second one join."""
    with open("patchbay.toml", "a") as file:
        file.write(configuration(7284))
    restart_desk()
    rig.patchbay("team", "init", "bench", "--host", HOST, "--wait", "0s", "--etcd", ETCD, status=75)
    rig.patchbay("team", "certificate", "etcd1", "127.0.0.1", "--out", "etcd")
    files = "etcd/etcd1/"
    options = ["--cert-file", files + "etcd1.pem", "--key-file", files + "etcd1-key.pem", "--client-cert-auth",
               "--trusted-ca-file", files + "ca.pem"]
    rig.start("etcd.log", "etcd", "--name", "etcd1", "--data-dir", "etcd-data", "--listen-client-urls", ETCD,
              "--advertise-client-urls", ETCD, *options)
    rig.eventually(lambda: "ready to serve client requests" in open("etcd.log").read())
    rig.patchbay("team", "init", "bench")
    restart_desk()
    with open("lab.toml", "w") as file:
        file.write("[api]\nport = 7283\n[discovery]\nenabled = false\n[devices]\nenabled = false\n" + configuration(7285))
    lab = start_lab()
    invite = next(word for word in rig.patchbay("team", "invite").split() if word.startswith("PATCHBAY-TEAM:"))
    rig.patchbay("team", "join", "-", "--host", OTHER, text=invite + "\n", socket=SOCKET)
    lab.terminate()
    lab.wait()
    start_lab()


def foreign_host(page, screen, received, phone):
    """The page of one host shows the phone of another one, operates its app, and says when the host is away.

    `screen` is the app's ID at its host, and `received` returns the calls that it received.
    """
    id = f"{screen}.{HOST}"
    open_page(page, BASE, rig.code(SOCKET))
    group = page.locator(".group", has=page.locator(f"h2:has-text('{HOST}')"))
    group.locator(".section-head", has_text="Demo iPhone").wait_for()
    group.locator(".row-id", has_text=id).wait_for()

    page.evaluate("id => { location.hash = `#/d/${id}` }", phone)
    page.get_by_text("Cable at desk").wait_for()
    page.wait_for_selector(".row-id >> text=shop-demo-iphone.desk", state="attached")

    page.evaluate("id => { location.hash = `#/e/${id}` }", id)
    page.wait_for_selector(".v-surface:not(.is-empty)")
    picture, before = page.locator(".v-screen-picture"), len(received())
    seen, size = picture.get_attribute("src"), picture.bounding_box()
    picture.click(position={"x": size["width"] / 2, "y": size["height"] / 4})
    page.wait_for_function("seen => document.querySelector('.v-screen-picture').src !== seen", arg=seen)
    assert [call["tool"] for call in received()[before:] if call["tool"] != "screenshot"] == ["tap"]
    # The host of the app has the lease and the call, and the other page says so.
    holders = [lease["holder"] for lease in rig.api("GET", "/v1/leases")[1]["leases"]]
    assert any(f"on {OTHER}" in holder for holder in holders), holders
    calls = [entry for entry in rig.api("GET", "/v1/activity")[1]["entries"] if entry.get("tool") == "tap"]
    assert OTHER in calls[-1]["client"]["name"] or calls[-1]["client"].get("host") == OTHER, calls[-1]
    page.click("[role=tab]:has-text('Activity')")
    page.get_by_text("The activity is at another host").wait_for()

    rig.stop_broker()
    page.get_by_text(f"Or the broker of the host {HOST} is away.").wait_for()
    rig.start_broker()
    page.wait_for_selector(".v-surface:not(.is-empty)")
    page.evaluate("location.hash = '#/'")
    group.locator(".section-head", has_text="Demo iPhone").wait_for()
