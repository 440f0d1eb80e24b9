"""Runs the demo on a terminal, and opens its page as a browser outside of the demo's network would: demopage.py DEMO"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
import urllib.request

leader, terminal = pty.openpty()
demo = subprocess.Popen([sys.argv[1], "--kinds", "--step"], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
os.close(terminal)
said, end = "", time.monotonic() + 100


def read(seconds):
    """Adds what the demo says within some seconds; False when it has ended."""
    global said
    try:
        if select.select([leader], [], [], seconds)[0]:
            said += os.read(leader, 65536).decode(errors="replace")
        return True
    except OSError:
        return False


while not (address := re.search(r"(http://127\.0\.0\.1:7282/)#code=(\w+)", said)) or "demo$ " not in said:
    assert time.monotonic() < end and read(0.2), said
    if said.endswith("[Enter]"):
        os.write(leader, b"\n")
page, code = address.groups()
print(urllib.request.urlopen(page, timeout=20).read().decode().count("<title>"), "page")
request = urllib.request.Request(page + "v1/dashboard/sessions", json.dumps({"code": code}).encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=20).status, "session")
os.write(leader, b"\x04")
while read(5):
    assert time.monotonic() < end, said
print(demo.wait(10), "end")
