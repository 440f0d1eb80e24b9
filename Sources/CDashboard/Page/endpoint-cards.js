// The cards of an app's overview: approval, routes, token, identity and TXT record.
import {confirmDialog, fill, foreign, h, icon, notice, stateBadge, time} from './dom.js';
import {api, may, path} from './session.js';
import {store} from './store.js';
import {act, actButton, actorText, appLink, dangerButton, table} from './parts.js';

/** The address with its interface, as the command line prints it. Approvals name it so. */
export const addressOf = route => route.interface ? `${route.address}%${route.interface}` : route.address;
export function routeText(route) {
  if (route.via === 'usb') return route.abstractSocket ?? `port ${route.port}`;
  return route.address.includes(':') ? `[${addressOf(route)}]:${route.port}` : `${addressOf(route)}:${route.port}`;
}
/** The network addresses of an app that an owner may approve, each once: those that wait, or those that were denied. */
export function openAddresses(endpoint, {denied = false} = {}) {
  const found = new Map();
  for (const route of endpoint.routes ?? []) {
    if (route.via === 'network' && route.approval !== 'approved' && (route.approval === 'denied') === denied && !route.registration && !found.has(addressOf(route))) found.set(addressOf(route), route);
  }
  return [...found.values()];
}
/** Approves one address. A port below 1024 has to be named. */
export const approve = (id, route) => api('PUT', path('endpoints', id, 'approval'), {address: route.address, ...route.port < 1024 && {port: route.port}});

/** A button that denies the addresses of an app that wait. */
export const denyButton = (endpoint, done) => dangerButton(['Deny', h('span.sr', ` ${endpoint.id}`)], {title: 'Deny this app?', action: 'Deny',
  text: `Patchbay remembers ${openAddresses(endpoint).map(addressOf).join(', ')} of ${endpoint.id}, never connects there, and does not ask again. You can still approve an address later.`},
async () => { await api('PUT', path('endpoints', endpoint.id, 'denial'), {}); done?.(); }, `${endpoint.id} is denied.`);

function card(heading, render) {
  const body = h('div.v-card-body');
  const element = h('section.card', h('h2', heading), body);
  return {element, update(endpoint) {
    const content = render(endpoint);
    element.hidden = !content;
    fill(body, content);
  }};
}

// Who decided, and when. Only owners may read it.
function decidedBy(list, id) {
  const note = h('span.v-sub');
  if (may('admin')) {
    api('GET', path(list)).then(answer => {
      const found = answer[list].find(({endpoint}) => endpoint === id);
      if (found) fill(note, 'by ', foreign(actorText(found.deniedBy ?? found.approvedBy)), ', ', time(found.deniedAt ?? found.approvedAt, {relative: true}));
    }, () => {});
  }
  return note;
}

export const approvalCard = () => card('Approval', endpoint => {
  const network = (endpoint.routes ?? []).filter(route => route.via === 'network');
  const open = openAddresses(endpoint);
  const denied = openAddresses(endpoint, {denied: true});
  const approved = network.some(route => route.approval === 'approved');
  if (endpoint.host && endpoint.hostRoutes) return h('p.v-hint', 'An owner of the host ', foreign(endpoint.host.name), ' approves this app there. It is ', foreign(endpoint.approval), '.');
  if (!network.length) return (endpoint.routes ?? []).some(route => route.via === 'usb') ? h('p.v-hint', 'The cable is the approval. It needs no other one.') : null;
  const changed = endpoint.approval === 'changed';
  return [
    changed && h('p.v-warning', icon('warning'), 'Another app answers at the approved address. Calls are refused until you approve again.'),
    open.length > 0 && h('p', 'Patchbay does not connect to an address before an owner approves it. Compare it with the address that the app or the phone shows.'),
    denied.length > 0 && h('p', 'An owner denied this app. Patchbay does not connect to it and does not ask again.', decidedBy('denials', endpoint.id)),
    open.length + denied.length > 0 && h('ul.plain', [...open, ...denied].map(route => h('li.v-row',
      h('code.v-address', foreign(addressOf(route))), route.approval === 'denied' && stateBadge('denied'), route.host && h('span.v-sub', 'announced by ', foreign(route.host)),
      may('admin') && actButton(`Approve ${addressOf(route)}`, () => approve(endpoint.id, route), `${addressOf(route)} is approved.`, open.includes(route) && 'primary')))),
    open.length > 0 && may('admin') && denyButton(endpoint),
    open.length > 0 && !may('admin') && h('p.v-hint', 'Only an owner can approve. Command: ', h('code', `patchbay approve ${endpoint.id}`)),
    approved && h('div.v-row', h('span', 'Approved: ', foreign([...new Set(network.filter(route => route.approval === 'approved').map(addressOf))].join(', ')), decidedBy('approvals', endpoint.id)),
      may('admin') && dangerButton('Revoke the approval', {title: 'Revoke this approval?', text: `Patchbay forgets the approved addresses and the token of ${endpoint.id}. Running calls, sessions and tunnels over the network end.`, action: 'Revoke'},
        () => api('DELETE', path('endpoints', endpoint.id, 'approval')), 'The approval is revoked.')),
  ];
});

export const routesCard = () => card('Routes', endpoint => {
  const routes = [...(endpoint.routes ?? []).map(route => [route, endpoint.id]), ...(endpoint.combinedWith ?? []).flatMap(other => (other.routes ?? []).map(route => [route, other.id])),
    ...(endpoint.hostRoutes ?? []).map(route => [route, endpoint.id])];
  if (!routes.length) return h('p.v-hint', endpoint.state === 'blocked' ? 'Patchbay never connects to this address.' : 'No route is known now. The app keeps its ID for its return.');
  return table('', ['Route', 'Address', 'Reports', 'Launch', 'Approval', 'Token'],
    h('tbody', routes.map(([route, owner], index) => h('tr',
      h('th', {scope: 'row'}, icon(route.via === 'usb' ? 'cable' : 'wifi'), route.via === 'usb' ? 'Cable' : route.inbound ? 'Inbound' : 'Network', index === 0 && routes.length > 1 && h('span.v-tag', {title: 'New connections use this route.'}, 'preferred')),
      h('td', h('code', foreign(routeText(route))), owner !== endpoint.id && h('span.v-sub', 'of ', appLink(owner)), route.host && h('span.v-sub', foreign(route.host))),
      h('td', foreign(route.app ?? '—'), route.mismatch && h('span.v-warning', ' answers as ', foreign(route.mismatch))),
      h('td', route.launchID ? h('code.v-cut.cut', foreign(route.launchID)) : '—'),
      h('td', stateBadge(route.approval)),
      h('td', route.secretHeld ? 'held' : '—')))));
});

export function tokenCard() {
  const input = h('input', {type: 'password', autocomplete: 'off', spellcheck: 'false', placeholder: 'Token, or the log line with the session URL', 'aria-label': 'Token of the app'});
  const form = h('form.v-row', {onsubmit: async event => {
    event.preventDefault();
    const spec = tokenIn(input.value);
    if (!spec.secret) return;
    await act(form.querySelector('button'), async () => {
      const response = await api('PUT', path('endpoints', current.id, 'secret'), spec, {raw: true});
      input.value = '';
      const trial = response.headers.get('Patchbay-Secret');
      notice(trial === 'accepted' ? 'The app accepts the token.' : trial === 'rejected' ? 'The running app rejects this token. It is kept for the next launch.' : 'The token is stored. The app was not asked yet.', {kind: trial === 'rejected' ? 'problem' : 'information'});
    });
  }}, input, h('button', {type: 'submit'}, 'Store the token'));
  const state = h('div.v-row');
  const body = h('div.v-card-body', state, form, h('p.v-hint', 'The broker stores the token sealed and sends it to this launch of the app only. No client can read it.'));
  const element = h('section.card', h('h2', 'Token'), body);
  let current = null;
  return {element, update(endpoint) {
    current = endpoint;
    const takesNone = ['dart-vm', 'debug', 'openagents', 'tcp', 'web'].includes(endpoint.kind) || (endpoint.hostRoutes && endpoint.host);
    element.hidden = takesNone || !may('admin');
    const held = (endpoint.routes ?? []).filter(route => route.secretHeld);
    fill(state, stateBadge(held.length ? 'approved' : 'off', {text: held.length ? `held for ${held.map(routeText).join(', ')}` : 'no token is held'}),
      held.length > 0 && dangerButton('Delete', {title: 'Delete this token?', text: `Patchbay forgets the token of ${endpoint.id}. Its sessions at the app end.`, action: 'Delete'}, () => api('DELETE', path('endpoints', endpoint.id, 'secret')), 'The token is deleted.'));
  }};
}

/** Takes the token and the port from a pasted log line with AppReveal's session URL, or the text itself. */
function tokenIn(text) {
  const match = /(?:[a-z]+:\/\/[^\s/?#]*?(?::(\d{1,5}))?[/?][^\s]*?)?appreveal_session_token=([^&#\s]+)/i.exec(text);
  if (!match) return {secret: text.trim()};
  const port = Number(match[1]);
  return {secret: match[2], ...port > 0 && port < 65536 && {port}};
}

export const identityCard = () => card('Identity', endpoint => {
  const {udid, deviceName, host} = endpoint.location ?? {};
  const rows = [
    ['ID', h('code', foreign(endpoint.id)), 'It stays after a rebuild, a new port and a replug.'],
    ['Made of', h('span', foreign(endpoint.kind), ', ', foreign(endpoint.app || 'an app without a name'), ', ', udid ? ['the phone ', foreign(deviceName || udid)] : ['the machine ', foreign(host || 'unknown')]), 'The kind, the app and the place. Addresses and ports are not part of it.'],
    endpoint.server && ['Server reports', foreign(endpoint.server), 'The name that the server gave over an approved route.'],
    endpoint.launchID && ['Launch', h('code', foreign(endpoint.launchID)), 'New at each launch of the app.'],
    ['Found by', (endpoint.sources ?? []).map(source => ({bonjour: 'Bonjour', usbmuxd: 'the cable', adb: 'adb', config: 'the configuration', debuglink: 'its own connection', registration: 'its registration'})[source] ?? source).join(', ') || 'nothing now'],
    endpoint.registered && ['Names', 'chosen by the app', 'The app registered itself with a grant, so it chose its own names.'],
    endpoint.formerIDs?.length && ['Also called', foreign(endpoint.formerIDs.join(', ')), 'IDs of apps that turned out to be this one. Commands accept them.'],
    endpoint.sameLaunchAs && ['Same as', appLink(endpoint.sameLaunchAs), 'Both report the same launch of the app, or one token works for both. Each keeps its own approval and token.'],
    ...(endpoint.combinedWith ?? []).map(other => ['Same as', appLink(other.id), 'Both report the same launch of the app, or one token works for both. Each keeps its own approval and token.']),
    ...(endpoint.possiblySameAs ?? []).map(other => ['Possibly the same as', sameView(endpoint, other), 'The app is the same, but nothing proves the same launch. This is a hint only: no approval or token depends on it.']),
    endpoint.capabilities?.length && ['Abilities', foreign(endpoint.capabilities.join(', '))],
    endpoint.limits?.length && ['Limits', foreign(endpoint.limits.join('; '))],
    ...(endpoint.deviations ?? []).map(one => ['Repaired', [`this server `, foreign(one.text), ` (${one.count} times)`]]),
  ].filter(Boolean);
  return h('dl.v-facts-list', rows.map(([term, value, why]) => h('div', h('dt', term), h('dd', value, why && h('span.v-sub', why)))));
});

// An owner who knows better joins a network address to the app on the cable.
function sameView(endpoint, otherID) {
  const other = store.endpoints.get(otherID);
  const isCabled = one => one?.routes?.some(route => route.via === 'usb');
  const [cabled, advert] = isCabled(endpoint) ? [endpoint, other] : [other, endpoint];
  const route = advert?.routes?.find(one => one.via === 'network');
  const canJoin = may('admin') && isCabled(cabled) && route && !isCabled(advert);
  return h('span.v-row', appLink(otherID), canJoin && h('button', {onclick: async ({currentTarget}) => {
    const text = `Patchbay then reaches ${cabled.id} also at ${addressOf(route)}. Only say so if you know that this address is the same phone.`;
    if (await confirmDialog({title: 'Are these one app?', text, action: `Approve ${addressOf(route)}`})) await act(currentTarget, () => approve(cabled.id, route), 'The address is approved for the app on the cable.');
  }}, 'They are the same'));
}

export const txtCard = () => card('TXT record', endpoint => !endpoint.txt?.length ? null : [
  table('.v-txt', ['Key', 'Value'], h('tbody', endpoint.txt.map(({key, value, base64}) => h('tr', h('th', {scope: 'row'}, h('code', foreign(key, 100))),
      h('td', value !== undefined ? h('code', foreign(value, 2000)) : base64 !== undefined ? [h('code', foreign(base64, 2000)), h('span.v-tag', 'base64')] : h('span.v-hint', 'no value')))))),
  endpoint.txtTruncated && h('p.v-hint', 'The record exceeded a limit, so this is a part of it.'),
  h('p.v-hint', 'The app announces this. Nothing in it is proven.'),
]);
