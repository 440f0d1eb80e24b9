// A row of the bench: one app with its routes as lines, its tunnels, the calls of agents, and its lease.
import {bytes, foreign, h, icon, list, printable, setForeign, setState, setText, setTime, stateBadge, time} from './dom.js';
import {callsOf, deviceName, leaseOf, store, titleOf} from './store.js';

/** Returns the address of an app's page. */
export const endpointLink = (id) => `#/e/${encodeURIComponent(id)}`;
/** Returns the address of a phone's page. */
export const deviceLink = (udid) => `#/d/${encodeURIComponent(udid)}`;
/** Returns the routes of an endpoint: its own ones, those of its host, and those of endpoints with the same launch. */
export const routesOf = (endpoint) =>
  [...(endpoint.hostRoutes ?? endpoint.routes ?? []), ...(endpoint.combinedWith ?? []).flatMap((other) => other.hostRoutes ?? other.routes ?? [])];
/** Returns the address of a route as text. */
export const routeText = (route) => (route.via === 'usb' ? route.abstractSocket ?? `:${route.port}`
  : `${route.address.includes(':') ? `[${route.address}]` : route.address}:${route.port}`);

const approvalTexts = {approved: 'approved', pending: 'waits for an approval', changed: 'another app answers: approve again', denied: 'denied'};
/** Returns a sentence about a route, for a tooltip and a screen reader. */
function routeTitle(route, isPreferred) {
  const way = route.via === 'usb' ? `Cable, ${route.abstractSocket ? 'socket' : 'port'}` : `Network${route.interface ? ` (${printable(route.interface, 20)})` : ''}`;
  return `${way} ${printable(routeText(route).replace(/^:/, ''), 80)}, ${approvalTexts[route.approval] ?? route.approval}${isPreferred ? ', preferred' : ''}`;
}

/** Builds the line of a route: strong if it is preferred, dashed without an approval. */
export function wire(route, isPreferred) {
  return h('span.wire', {class: [`wire-${route.via === 'usb' ? 'cable' : 'wifi'}`, isPreferred && 'preferred', route.approval !== 'approved' && 'unapproved'],
    title: routeTitle(route, isPreferred)});
}

/** Builds the lease of an endpoint or a phone. */
export function leaseChip(lease) {
  return h('span.chip.lease', {title: printable(`Leased by ${lease.holder}${lease.note ? `: ${lease.note}` : ''}`, 400)},
    icon('lock'), foreign(lease.own ? `${lease.holder} (you)` : lease.holder, 60, 'cut'),
    lease.expiresAt ? time(lease.expiresAt, {left: true}) : null,
    lease.waiting > 0 && h('span', `+${lease.waiting} waiting`));
}

const listenText = (address) => String(address).replace(/^tcp:/, '');
/** Builds a tunnel with its rates. `updateTunnelChip` brings the next rates. */
export function tunnelChip(tunnel) {
  const element = h('a.chip.tunnel', {href: '#/tunnels'}, icon('tunnel'), h('span.mono'), h('span.rate'));
  updateTunnelChip(element, tunnel);
  return element;
}
export function updateTunnelChip(element, tunnel) {
  const {bytesPerSecondDown: down = 0, bytesPerSecondUp: up = 0, bytesDown = 0, bytesUp = 0} = tunnel.statistics;
  const name = `chip tunnel tunnel-${tunnel.state.name}${down + up > 0 ? ' flowing' : ''}`;
  if (element.className !== name) element.className = name;
  setText(element.children[1], printable(listenText(tunnel.listenAddresses[0] ?? tunnel.spec.local), 60));
  setText(element.lastChild, tunnel.state.name !== 'active' ? tunnel.state.name : down + up > 0 ? `↓ ${bytes(down)}/s ↑ ${bytes(up)}/s` : bytes(bytesDown + bytesUp));
  element.title = `Tunnel ${tunnel.id}, ${tunnel.state.name}: ${bytes(bytesDown)} down, ${bytes(bytesUp)} up`;
}

/** Builds a running call of an agent. */
const callChip = (call) => h('a.chip.call', {href: '#/activity', title: 'A running call'}, stateBadge('running', {label: false, text: 'running'}),
  foreign(call.agent.client?.name || call.agent.name, 40, 'cut'), h('span.mono.cut', printable(call.tool, 60)), time(call.startedAt, {relative: true}));

let tunnelsByTarget = new Map();
let indexed = null;
/** Returns the tunnels to an endpoint (`e:ID`) or to a phone (`d:UDID`). */
export function tunnelsOf(target) {
  if (indexed !== store.tunnels) {
    indexed = store.tunnels;
    tunnelsByTarget = new Map();
    for (const tunnel of store.tunnels.values()) {
      const {endpoint, device} = tunnel.spec.target;
      const key = endpoint ? `e:${endpoint}` : `d:${device?.udid}`;
      tunnelsByTarget.set(key, [...(tunnelsByTarget.get(key) ?? []), tunnel]);
    }
  }
  return tunnelsByTarget.get(target) ?? [];
}

const where = (endpoint) => {
  const device = store.devices.get(endpoint.location?.udid);
  return (device ? deviceName(device) : endpoint.location?.deviceName ?? endpoint.location?.host) ?? '';
};

/** Builds a row. With `isAlone` it names its phone and its lease, because no heading above it does. */
export function endpointRow(endpoint, isAlone) {
  const parts = {
    wires: h('span.wires'),
    state: stateBadge(endpoint.state, {label: false}),
    link: h('a.row-link', {dataset: {row: ''}, href: endpointLink(endpoint.id)}, h('bdi.cut')),
    id: h('span.row-id.mono.cut'),
    kind: h('span.row-kind.cut'),
    place: h('bdi.row-where.cut'),
    routes: h('span.row-routes'),
    note: h('span.row-note.cut'),
    extras: h('span.row-extras'),
    seen: time(null, {relative: true}),
  };
  const row = h('li.row', {class: isAlone && 'is-alone'}, parts.wires, parts.state, h('span.row-name', parts.link, parts.id), parts.kind,
    isAlone ? parts.place : null, parts.routes, h('span.row-middle', parts.note, parts.extras), h('span.row-seen', parts.seen));
  Object.assign(row, {parts, isAlone, routesKey: null, extrasKey: ''});
  updateRow(row, endpoint);
  return row;
}

/** Shows a changed endpoint in its row. Only what differs is written. */
export function updateRow(row, endpoint) {
  const {parts} = row;
  row.endpoint = endpoint;
  setState(parts.state, endpoint.state);
  row.classList.toggle('offline', endpoint.state === 'offline');
  setForeign(parts.link.firstChild, titleOf(endpoint), 120);
  setText(parts.id, endpoint.id);
  setText(parts.kind, printable(endpoint.kind, 40));
  if (row.isAlone) setForeign(parts.place, where(endpoint), 80);
  const routes = routesOf(endpoint);
  const key = routes.map((route) => `${route.via}${route.address ?? route.udid}${route.port ?? route.abstractSocket}${route.approval}`).join();
  if (row.routesKey !== key) {
    row.routesKey = key;
    showRoutes(row, routes);
  }
  setText(parts.note, noteOf(endpoint));
  parts.note.title = endpoint.state === 'online' ? '' : printable(endpoint.reason ?? '', 300);
  // The time of an endpoint that is here would always be "now".
  setTime(parts.seen, endpoint.state === 'online' ? null : endpoint.lastSeenAt ?? null);
  updateExtras(row);
}

function noteOf(endpoint) {
  if (endpoint.state === 'blocked') return `Blocked: ${printable(endpoint.reason ?? '', 80)}`;
  if (endpoint.state !== 'offline' && endpoint.approval === 'pending') return 'Waits for an approval';
  if (endpoint.state !== 'offline' && endpoint.approval === 'denied') return 'Denied';
  if (endpoint.state !== 'offline' && endpoint.approval === 'changed') return 'Another app answers: approve again';
  if (endpoint.state === 'suspect') return printable(endpoint.reason ?? 'Not confirmed', 80);
  if (endpoint.host?.staleSince) return 'The registry of the team is unreachable';
  return endpoint.sameLaunchAs ? `Same launch as ${endpoint.sameLaunchAs}` : '';
}

function showRoutes(row, routes) {
  const preferred = routes.findIndex((route) => route.approval === 'approved');
  const shown = routes.slice(0, 3);
  row.parts.wires.replaceChildren(...(shown.length ? shown.map((route, at) => wire(route, at === preferred)) : [h('span.wire.none', {title: 'No route'})]));
  row.parts.routes.replaceChildren(...shown.map((route, at) =>
    h('span.route-text.cut', {class: [at === preferred && 'preferred', route.approval !== 'approved' && 'unapproved'], title: routeTitle(route, at === preferred)},
      icon(route.via === 'usb' ? 'cable' : 'wifi'), h('span.sr', route.via === 'usb' ? 'cable ' : 'network '), printable(routeText(route), 60))), ...(routes.length > shown.length ? [h('small', `+${routes.length - shown.length} more`)] : []));
}

/** Shows tunnels, calls and the lease, which change without their endpoint. */
export function updateExtras(row) {
  const {endpoint} = row;
  const tunnels = tunnelsOf(`e:${endpoint.id}`);
  const calls = callsOf(endpoint.id);
  const lease = leaseOf(endpoint);
  const shownLease = lease && (row.isAlone || !lease.device) ? lease : null;
  if (!tunnels.length && !calls.length && !shownLease && !row.extrasKey) return;
  const items = [...calls.slice(0, 2).map((call) => ({key: `c${call.activity}`, call})), ...(shownLease ? [{key: `l${lease.id}${lease.expiresAt}${lease.waiting}`, lease}] : []),
    ...tunnels.slice(0, 2).map((tunnel) => ({key: `t${tunnel.id}`, tunnel}))];
  row.extrasKey = items.length ? 'some' : '';
  list(row.parts.extras, items, (item) => item.key,
    ({call, tunnel, lease: held}) => (call ? callChip(call) : tunnel ? tunnelChip(tunnel) : leaseChip(held)),
    (element, {tunnel}) => { if (tunnel) updateTunnelChip(element, tunnel); });
  const isFlowing = tunnels.some(({statistics}) => (statistics.bytesPerSecondDown ?? 0) + (statistics.bytesPerSecondUp ?? 0) > 0);
  row.parts.wires.classList.toggle('flowing', isFlowing || calls.length > 0);
}
