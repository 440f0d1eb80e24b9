"""A page of another origin in the browser of a signed-in owner, and pages of a name that leads to the broker's address."""
import contextlib
import http.server
import threading

from page import open_page

PORT = 3000
# One attempt each. "blocked" is what the page must find: no answer to read, no connection, no window to look into.
ATTEMPTS = """async ([base, code, token, script]) => {
  const said = {}, json = {'Content-Type': 'application/json'}, body = JSON.stringify({code});
  const bearer = {Authorization: `Bearer ${token}`};
  const within = promise => Promise.race([promise, new Promise(end => setTimeout(end, 10000, 'no answer'))]);
  const loaded = element => new Promise(end => { element.onload = () => end('loaded'); element.onerror = () => end('blocked'); document.body.append(element); });
  const element = (name, attributes) => Object.assign(document.createElement(name), attributes);
  const form = (path, fields, enctype) => {
    const frame = element('iframe', {name: path});
    const sent = new Promise(end => { frame.onload = () => end('sent'); });
    const it = element('form', {action: base + path, method: 'post', enctype, target: path});
    for (const [name, value] of fields) it.append(element('input', {name, value}));
    // The load of the empty frame comes before that of the answer.
    document.body.append(frame, it);
    it.submit();
    return sent;
  };
  const reads = {
    'the page': ['/'], 'the list': ['/v1/endpoints'], 'the list with a stolen session': ['/v1/endpoints', {headers: bearer}],
    'the events': ['/v1/events', {headers: bearer}], 'a session': ['/v1/dashboard/sessions', {method: 'POST', headers: json, body}],
    'a code': ['/v1/dashboard/codes', {method: 'POST', headers: json, body: '{}'}],
    'a lease': ['/v1/leases', {method: 'POST', headers: {...json, ...bearer}, body: '{"endpoint":"desk-desk","seconds":60}'}],
    'a script': [script], 'MCP': ['/mcp', {method: 'POST', headers: json, body: '{"jsonrpc":"2.0","id":1,"method":"initialize"}'}],
  };
  for (const [name, [path, options]] of Object.entries(reads)) {
    said[name] = await within(fetch(base + path, options).then(answer => `answered ${answer.status}`, () => 'blocked'));
  }
  // Sent without a preflight. The page cannot read the answers; the broker must have refused them.
  for (const path of ['/v1/dashboard/sessions', '/v1/leases', '/v1/tunnels']) {
    await fetch(base + path, {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body}).catch(() => {});
    navigator.sendBeacon(base + path, new Blob([body], {type: 'text/plain'}));
  }
  await within(form('/v1/dashboard/sessions', [[`{"code":"${code}","x":"`, '"}']], 'text/plain'));
  await within(form('/v1/leases', [['endpoint', 'desk-desk'], ['seconds', '60']], 'application/x-www-form-urlencoded'));
  said['a socket'] = await within(new Promise(end => {
    const socket = new WebSocket(base.replace('http', 'ws') + '/v1/streams?endpoint=desk-desk', ['patchbay-stream']);
    socket.onopen = () => end('opened');
    socket.onerror = () => end('blocked');
  }));
  said['an event source'] = await within(new Promise(end => {
    const source = new EventSource(base + '/v1/events');
    source.onopen = () => end('opened');
    source.onerror = () => { source.close(); end('blocked'); };
  }));
  said['a module'] = await within(loaded(element('script', {type: 'module', src: base + script})));
  said['a script element'] = await within(loaded(element('script', {src: base + script})));
  said['an image'] = await within(loaded(element('img', {src: base + script.replace('app.js', 'icon.svg')})));
  try { new SharedWorker(base + script.replace('app.js', 'feed-worker.js'), {type: 'module', name: 'patchbay'}); said['the worker'] = 'opened'; } catch { said['the worker'] = 'blocked'; }
  const frame = element('iframe', {src: `${base}/#code=${code}`});
  await within(loaded(frame));
  try { said['a frame'] = frame.contentDocument ? 'read' : 'blocked'; } catch { said['a frame'] = 'blocked'; }
  return said;
}"""
WINDOW = """async ([base, code]) => {
  const opened = window.open(`${base}/#code=${code}`, 'dashboard');
  await new Promise(end => setTimeout(end, 1000));
  opened.postMessage({code}, '*');
  try { return opened.document ? 'read' : 'blocked'; } catch { return 'blocked'; }
}"""


WORKER = b"self.oninstall = () => self.skipWaiting(); self.onactivate = event => event.waitUntil(clients.claim());"


@contextlib.contextmanager
def site(port=PORT):
    """Serves an empty page at every name of this machine, and the script of a service worker."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            is_script = self.path == "/worker.js"
            body = WORKER if is_script else b"<!doctype html><title>another site</title><body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if is_script else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    server.shutdown()
    server.server_close()


def other_pages(page, base, code, another_code, state):
    """A page of another origin, and one of the same site, read, change and open nothing with a code and a session."""
    open_page(page, base, code)
    page.wait_for_selector(".row")
    token = page.evaluate("sessionStorage.getItem('patchbay.session')")
    script = page.evaluate("new URL(document.querySelector('script[type=module]').src).pathname")
    before = state()
    with site():
        for host in ("localhost", "127.0.0.1"):
            attack(page, f"http://{host}:{PORT}/", base, another_code, token, script)
    assert state() == before, (state(), before)
    # The owner's page goes on, and no attempt used the code up.
    page.reload()
    page.wait_for_selector(".row")
    open_page(page.context.browser.new_context().new_page(), base, another_code)


def attack(page, address, base, code, token, script):
    other, answers = page.context.new_page(), []
    other.on("response", lambda response: answers.append((response.status, response.request.method, response.url)))
    other.goto(address)
    said = other.evaluate(ATTEMPTS, [base, code, token, script])
    assert set(said.values()) == {"blocked"}, (address, said)
    with page.context.expect_page() as opened:
        assert other.evaluate(WINDOW, [base, code]) == "blocked"
    assert opened.value.evaluate("performance.getEntriesByType('navigation')[0].responseStatus") == 403, opened.value.content()
    opened.value.close()
    other.close()
    refused = [answer[0] for answer in answers if answer[2].startswith(base)]
    assert len(refused) >= 8 and set(refused) == {403}, (address, answers)


def rebinding(page, name, port):
    """A page of another name for the broker's address is neither served nor answered."""
    assert page.goto(f"http://{name}:{port}/").status == 421
    statuses = page.evaluate("""() => Promise.all([fetch('/'), fetch('/v1/endpoints'), fetch('/v1/dashboard/sessions',
        {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"code": "x"}'})]).then(all => all.map(one => one.status))""")
    assert statuses == [421, 421, 421], statuses


def service_worker(page, base, fresh_code):
    """While a service worker of the port's former user controls the page, no sign-in works; the page removes it."""
    with site(int(base.rsplit(":", 1)[1])):
        page.goto(base)
        page.evaluate("navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)")
        page.wait_for_function("() => navigator.serviceWorker.controller")
    code = fresh_code()
    page.goto("about:blank")
    page.goto(f"{base}/#code={code}")
    page.wait_for_selector(".v-error >> text=service worker")
    assert page.evaluate("sessionStorage.getItem('patchbay.session')") is None
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0
    # The code was not sent.
    page.goto("about:blank")
    open_page(page, base, code)
    assert page.evaluate("navigator.serviceWorker.controller") is None
