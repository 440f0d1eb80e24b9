// Tunnels: create, copy the address, watch the bytes, remove.
import {bytes, copyButton, dialog, duration, fill, foreign, h, list, noticeProblem, printable, setForeign, setState, setText, stateBadge, svg} from './dom.js';
import {api, may, path} from './session.js';
import {deviceName, refresh, store, subscribe, titleOf} from './store.js';
import {appLink, check, dangerButton, emptyView, field, formDialog, page, phoneLink, table} from './parts.js';

export const title = 'Tunnels';

const SAMPLES = 60;
// Bytes per second of the last minute, kept while the page is open.
const history = new Map();

export function render(root, params, ctx) {
  const body = h('tbody');
  const total = h('p.v-facts');
  const rows = table('.v-tunnels', ['Local address', 'Leads to', 'State', 'Last minute', 'Total', ''], body);
  const place = h('div');
  page(root, 'Tunnels', total, may('tunnel.open') && h('button.primary', {onclick: () => tunnelDialog(params.query.get('endpoint'))}, 'New tunnel…'), place);

  function show() {
    const tunnels = [...store.tunnels.values()];
    const open = tunnels.reduce((sum, tunnel) => sum + tunnel.statistics.open, 0);
    setText(total, tunnels.length ? `${tunnels.length} tunnels, ${open} open connections. A tunnel keeps its address while its phone is away.` : 'A local address that leads to an app or to a port of a phone.');
    if (!tunnels.length) return fill(place, emptyView('No tunnels', 'A tunnel gives a tool on this machine a fixed address of an app. Command: ', h('code', 'patchbay forward tcp:0 --endpoint ID')));
    if (!rows.isConnected) fill(place, rows);
    list(body, tunnels, tunnel => tunnel.id, row, update);
  }
  // One sample a second, also while nothing flows.
  const sample = () => {
    for (const {id, statistics} of store.tunnels.values()) {
      const samples = history.get(id) ?? [];
      samples.push([statistics.bytesPerSecondUp ?? 0, statistics.bytesPerSecondDown ?? 0]);
      if (samples.length > SAMPLES) samples.shift();
      history.set(id, samples);
    }
    for (const id of history.keys()) if (!store.tunnels.has(id)) history.delete(id);
    if (!document.hidden) for (const element of body.children) drawGraph(element);
  };
  const end = subscribe(['tunnels', 'endpoints', 'devices'], show);
  const timer = setInterval(sample, 1000);
  show();
  sample();
  if (params.query.get('new') && may('tunnel.open')) tunnelDialog(params.query.get('endpoint'));
  return () => { end(); clearInterval(timer); };
}

const addressesOf = ({listenAddresses, spec}) => (listenAddresses?.length ? listenAddresses : [spec.local]).map(address => address.replace(/^tcp:/, ''));

function row(tunnel) {
  const addresses = addressesOf(tunnel);
  const {endpoint, device} = tunnel.spec.target;
  const name = `${tunnel.id} (${addresses[0]})`;
  const element = h('tr', {dataset: {row: '', id: tunnel.id}, tabindex: '-1'},
    h('th', {scope: 'row'}, h('span.v-row', h('code.v-address', foreign(addresses[0])), copyButton(addresses[0], `Copy ${addresses[0]}`)),
      h('span.v-sub', tunnel.id, addresses.length > 1 && ` · also ${addresses.slice(1).join(', ')}`, !tunnel.spec.persistent && ' · ends with its command', tunnel.spec.allowAnyUser && ' · any user', tunnel.spec.allowBrowsers && ' · browsers')),
    h('td', endpoint ? appLink(endpoint) : phoneLink(device, h('span.v-sub', device.abstractSocket ?? `port ${device.port}`))),
    h('td', stateBadge(tunnel.state.name), h('span.v-sub.v-tunnel-reason')),
    h('td', svg('svg', {class: 'v-graph', viewBox: `0 0 ${SAMPLES - 1} 24`, preserveAspectRatio: 'none', 'aria-hidden': 'true'}, svg('polyline', {class: 'v-graph-down'}), svg('polyline', {class: 'v-graph-up'})), h('span.v-sub.v-rate')),
    h('td', h('span.v-total'), h('span.v-sub.v-connections')),
    h('td.v-actions',
      dangerButton('Remove', () => { const open = store.tunnels.get(tunnel.id)?.statistics.open ?? 0; return {title: 'Remove this tunnel?', text: `${name} stops listening.${open ? ` Its ${open} open connections are closed.` : ''} Tools that use this address no longer reach the app.`, action: 'Remove'}; },
        async () => { await api('DELETE', path('tunnels', tunnel.id)); await refresh('tunnels'); }, `${tunnel.id} is removed.`)));
  update(element, tunnel);
  return element;
}

function update(element, tunnel) {
  const {statistics: numbers, state} = tunnel;
  setState(element.querySelector('.state'), state.name);
  setForeign(element.querySelector('.v-tunnel-reason'), state.reason ?? '');
  setText(element.querySelector('.v-rate'), `↑ ${bytes(numbers.bytesPerSecondUp ?? 0)}/s  ↓ ${bytes(numbers.bytesPerSecondDown ?? 0)}/s`);
  setText(element.querySelector('.v-total'), `↑ ${bytes(numbers.bytesUp)}  ↓ ${bytes(numbers.bytesDown)}`);
  const failures = Object.entries(numbers.failures ?? {}).map(([reason, count]) => `${count} ${reason}`).join(', ');
  const connections = element.querySelector('.v-connections');
  setText(connections, `${numbers.open} open, ${numbers.connections} in all${numbers.lastConnectMilliseconds !== undefined ? `, connected in ${duration(numbers.lastConnectMilliseconds)}` : ''}${failures ? ` · failed: ${failures}` : ''}`);
}

function drawGraph(element) {
  const samples = history.get(element.dataset.id);
  if (!samples) return;
  const most = Math.max(1000, ...samples.flat());
  // The root keeps small rates visible beside large ones.
  const points = index => samples.map((pair, at) => `${SAMPLES - samples.length + at},${(23 - 21 * Math.sqrt(pair[index] / most)).toFixed(1)}`).join(' ');
  const [down, up] = element.querySelectorAll('polyline');
  down.setAttribute('points', points(1));
  up.setAttribute('points', points(0));
}

/** Opens the form for a tunnel to an app or to a port of a phone. */
export function tunnelDialog(wanted) {
  const targets = [...store.endpoints.values()].filter(endpoint => !endpoint.sources?.includes('debuglink') && endpoint.state !== 'blocked').sort((one, other) => titleOf(one).localeCompare(titleOf(other)));
  const target = h('select', {onchange: show},
    h('optgroup', {label: 'Apps'}, targets.map(({id}) => h('option', {value: `e ${id}`}, id))),
    h('optgroup', {label: 'Phones'}, [...store.devices.values()].map(device => h('option', {value: `d ${device.udid}`}, printable(`${deviceName(device)} (${device.udid})`, 80)))));
  if (wanted) target.value = `e ${wanted}`;
  const port = h('input', {type: 'number', min: '1', max: '65535', placeholder: '9876'});
  const portField = field('Port of the phone', port);
  const local = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'any free port'});
  const anyUser = h('input', {type: 'checkbox'});
  const browsers = h('input', {type: 'checkbox'});
  function show() { portField.hidden = !target.value.startsWith('d '); port.required = !portField.hidden; }
  const opened = formDialog({title: 'New tunnel', submit: 'Create the tunnel'}, [field('Leads to', target), portField, field('Local port', local, 'A port, an address such as 127.0.0.1:7777, or the path of a socket.'),
    check(anyUser, 'Any user of this machine', 'Otherwise only programs of your user may connect.'),
    check(browsers, 'Web pages', 'Also accepts HTTP requests that a web page could have sent.')], async () => {
    const [kind, id] = target.value.split(' ');
    const text = local.value.trim();
    const tunnel = await api('POST', '/v1/tunnels', {local: !text ? 'tcp:0' : text.startsWith('/') ? `unix:${text}` : /^(tcp|unix):/.test(text) ? text : `tcp:${text}`,
      target: kind === 'e' ? {endpoint: id} : {device: {udid: id, port: Number(port.value)}}, noRebind: true, persistent: true, allowAnyUser: anyUser.checked, allowBrowsers: browsers.checked});
    const [address] = addressesOf(tunnel);
    opened.close();
    dialog({title: 'The tunnel is open', body: h('div.v-row', h('code.v-address', foreign(address)), copyButton(address, 'Copy the address'))});
    refresh('tunnels').catch(noticeProblem);
  });
  show();
}
