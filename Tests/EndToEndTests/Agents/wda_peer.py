#!/usr/bin/env python3
"""Uses the server at the URL with facebook-wda, an independent client of WebDriverAgent."""
import sys

import wda

client = wda.Client(sys.argv[1])
client.status()
client.screenshot(format="raw")
client.source()
client.source(format="json")
client.app_current()
session = client.session()
session.window_size()
session.tap(10, 20)
session.swipe(1, 2, 3, 4, duration=0.5)
session.press("home")
session.press("volumeUp")
session.open_url("https://x.test/a")
session.app_launch("com.example.shop")
session.app_terminate("com.example.shop")
element = session(xpath="//XCUIElementTypeButton").get()
print(element.text)
element.tap()
element.set_text("hello")
session.send_keys("7\b")
