"""Opens a page in headless Chromium that uses the broker's API, and prints what the page could do.

  browser.py BROKER_PORT PAGE_PORT TOKEN ENDPOINT FOLDER

The origin of the page is http://localhost:PAGE_PORT. The last line of output is a JSON object.
"""

import queue
import sys

sys.dont_write_bytecode = True
from foreign_page import opened

PAGE = """<!doctype html><script>
const base = "http://127.0.0.1:BROKER", said = {};
const ask = (method, path, body, more = {}) => fetch(base + path, {
  method, body: body && JSON.stringify(body),
  headers: {Authorization: "Bearer TOKEN", Accept: "application/json, text/event-stream",
    ...(body ? {"Content-Type": "application/json"} : {}), ...more},
});
const rpc = (path, id, method, params, more) => ask("POST", path, {jsonrpc: "2.0", id, method, params}, more);
const client = {protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {name: "page", version: "1"}};
const tries = {
  async broker() {
    const hello = await rpc("/mcp", 1, "initialize", client);
    const session = {"Mcp-Session-Id": hello.headers.get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-06-18"};
    await ask("POST", "/mcp", {jsonrpc: "2.0", method: "notifications/initialized"}, session);
    const list = await (await rpc("/mcp", 2, "tools/list", {}, session)).json();
    const call = await (await rpc("/mcp", 3, "tools/call", {name: "endpoint_list", arguments: {}}, session)).json();
    const end = await ask("DELETE", "/mcp", undefined, session);
    return [list.result.tools.length > 3, JSON.stringify(call.result).includes("ENDPOINT"), end.status];
  },
  async app() {
    const list = await (await rpc("/e/ENDPOINT/mcp", 1, "tools/list", {_meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": {name: "page", version: "1"}}},
      {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"})).json();
    return list.result.tools.length > 0;
  },
  async api() { return (await (await ask("GET", "/v1/endpoints")).json()).endpoints.length; },
  async events() {
    const reader = (await ask("GET", "/v1/events")).body.getReader();
    const first = await reader.read();
    await reader.cancel();
    return new TextDecoder().decode(first.value).includes("event:");
  },
  async refused() {
    const answer = await ask("GET", "/v1/endpoints", undefined, {Authorization: "Bearer pbg_wrong"});
    return [answer.status, answer.headers.get("WWW-Authenticate"), (await answer.json()).code];
  },
  async absent() { return (await ask("GET", "/nowhere")).status; },
};
(async () => {
  for (const [name, attempt] of Object.entries(tries)) {
    try { said[name] = await attempt(); } catch (error) { said[name] = error.name; }
  }
  await fetch("/said", {method: "POST", body: JSON.stringify(said)});
})();
</script>"""


def main(broker, page, token, endpoint, folder):
    html = PAGE.replace("BROKER", broker).replace("TOKEN", token).replace("ENDPOINT", endpoint)
    with opened(html, page, folder) as said:
        try:
            print(said.get(timeout=40))
        except queue.Empty:
            sys.exit("the page said nothing")


main(*sys.argv[1:])
