// "Connect with …": the lines that connect a tool of the reader to an app or a phone.
import {codeLine, h} from './dom.js';
import {routesOf} from './rows.js';
import {titleOf} from './store.js';

/** Quotes a word for a POSIX shell. */
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);
const shortName = (endpoint) => (titleOf(endpoint).split('.').pop().toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 24) || 'app');
/** Returns whether an app of this kind has no MCP tools. */
export const noTools = (endpoint) => (endpoint.limits ?? []).some((limit) => limit.startsWith('no MCP tools'));
const noTunnels = (endpoint) => (endpoint.limits ?? []).some((limit) => limit.startsWith('no tunnels'));

/** Returns the lines for an app as `[{tool, text, note}]`. */
function endpointLines(endpoint) {
  const {id} = endpoint;
  const name = shortName(endpoint);
  const usb = routesOf(endpoint).find(({via}) => via === 'usb');
  // A browser of this machine has its own port already.
  const port = endpoint.kind === 'web' ? 9333 : usb?.port ?? routesOf(endpoint)[0]?.port ?? 8080;
  const lines = [];
  if (!noTools(endpoint)) {
    lines.push({tool: 'Claude Code', text: `claude mcp add ${name} -- patchbay mcp --endpoint ${id}`, note: 'Starts patchbay mcp, without a token.'});
    lines.push({tool: 'Claude Code over HTTP', text: `claude mcp add --transport http ${name} ${location.origin}/e/${id}/mcp --header "Authorization: Bearer $GRANT"`,
      note: 'GRANT is the token of a grant: patchbay pair, or an invite of the view Access.'});
    lines.push({tool: 'Cursor (.cursor/mcp.json)', text: JSON.stringify({mcpServers: {[name]: {command: 'patchbay', args: ['mcp', '--endpoint', id]}}}, null, 2)});
  }
  if (!noTunnels(endpoint)) {
    lines.push({tool: 'patchbay forward', text: `patchbay forward tcp:0 --endpoint ${id}`, note: 'Opens a free local port over the best route, and survives a replug.'});
    if (usb?.port && endpoint.kind !== 'web') lines.push({tool: 'iproxy', text: `patchbay iproxy ${port}:${port} -u ${quoted(usb.udid)}`, note: 'Takes the command line of iproxy unchanged.'});
    if (endpoint.kind === 'dart-vm') {
      lines.push({tool: 'flutter attach', text: `patchbay forward tcp:0 --endpoint ${id} --allow-browsers\nflutter attach --debug-url URL`, note: 'forward prints the URL.'});
    }
    if (endpoint.kind === 'web') {
      lines.push({tool: 'Playwright', text: `patchbay forward ${port} --endpoint ${id} --detach`, note: `chromium.connect_over_cdp("http://127.0.0.1:${port}")`});
      lines.push({tool: 'chrome-devtools-mcp', text: `patchbay forward ${port} --endpoint ${id} --detach\nnpx chrome-devtools-mcp --browserUrl http://127.0.0.1:${port}`});
    } else lines.push({tool: 'Playwright', text: `patchbay forward ${port} --endpoint ${id} --allow-browsers --detach\nnpx playwright open http://127.0.0.1:${port}/`, note: 'For a page or a web view that the app serves.'});
  }
  if (!noTools(endpoint)) {
    lines.push({tool: 'patchbay call', text: `patchbay tools ${id}\npatchbay call ${id} TOOL key=value`});
    lines.push({tool: 'curl', text: `curl -H "Authorization: Bearer $GRANT" -H 'Content-Type: application/json' \\\n  ${location.origin}/v1/endpoints/${id}/call -d '{"tool": "TOOL", "arguments": {}}'`});
  } else {
    lines.push({tool: 'curl', text: `patchbay forward ${port} --endpoint ${id} --detach\ncurl http://127.0.0.1:${port}/`});
  }
  return lines;
}

/** Returns the lines for a phone. */
function deviceLines(device, port = 9876) {
  const udid = quoted(device.udid);
  return [
    {tool: 'patchbay forward', text: `patchbay forward ${port} --device ${udid}`, note: 'The port of the phone at the same local port. It survives a replug.'},
    {tool: 'iproxy', text: `patchbay iproxy ${port}:${port} -u ${udid}`, note: 'Takes the command line of iproxy unchanged.'},
    {tool: 'ssh', text: `ssh -o ProxyCommand='patchbay stdio ${String(device.udid).replace(/[^\w-]/g, '')}:22' root@phone`},
    {tool: 'Tools of usbmuxd', text: `patchbay usbmux ${udid} --socket /tmp/phone\nUSBMUXD_SOCKET_ADDRESS=UNIX:/tmp/phone idevice_id -l`, note: 'A socket that shows this phone alone.'},
    {tool: 'curl', text: `patchbay forward ${port} --device ${udid} --detach\ncurl http://127.0.0.1:${port}/`},
    {tool: 'Playwright', text: `patchbay forward ${port} --device ${udid} --allow-browsers --detach\nnpx playwright open http://127.0.0.1:${port}/`},
  ];
}

/** Builds the card "Connect with …" for `{endpoint}` or `{device, port}`. */
export function connectCard({endpoint, device, port}) {
  const lines = endpoint ? endpointLines(endpoint) : deviceLines(device, port);
  return h('section.card.connect', h('h2', 'Connect with …'),
    lines.map(({tool, text, note}) => h('details.connect-line', {name: 'connect'}, h('summary', tool),
      h('div', codeLine(text, `Copy the line for ${tool}`), note ? h('small', note) : null))));
}
