"""A page of another origin in headless Chromium, which reports what it could do."""

import contextlib
import http.server
import queue
import subprocess
import threading


def chromium(folder):
    """The words of a command of the browser. Root needs --no-sandbox."""
    return ["chromium-headless-shell", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]


@contextlib.contextmanager
def opened(html, port, folder):
    """Opens a page at http://localhost:PORT, and gives the queue of the bodies that the page posts to /said."""
    said = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self, body):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply(html.encode() if self.path == "/" else b"")

        def do_POST(self):
            said.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.reply(b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = subprocess.Popen(chromium(folder) + ["--remote-debugging-port=0", f"http://localhost:{port}/"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield said
    finally:
        browser.kill()
        browser.wait()
