// Decisions of an owner: requests for access, approvals of addresses, invites and grants.
import {fill, foreign, h, icon, list, printable, setText, stateBadge, time} from './dom.js';
import {api, may, path, who} from './session.js';
import {refresh, store, subscribe, titleOf} from './store.js';
import {BYPASSING, SCOPES, actButton, actorText, appLink, check, dangerButton, emptyView, field, formDialog, page, permissionsView, section, table} from './parts.js';
import {addressOf, approve, denyButton, openAddresses} from './endpoint-cards.js';
import {inviteDialog, inviteRow} from './invites.js';
import {endpointLink} from './rows.js';

export const title = 'Access';

const answer = (request, label, done, classes) => actButton(label,
  async () => { await api('POST', path('access-requests', request.userCode, label.toLowerCase())); await refresh('access-requests'); }, done, classes);

/** The apps whose addresses wait for an approval, the newest first. */
function waiting() {
  const found = [];
  for (const endpoint of store.endpoints.values()) {
    if (endpoint.approval !== 'approved' && ['online', 'suspect'].includes(endpoint.state) && !endpoint.hostRoutes && openAddresses(endpoint).length) found.push(endpoint);
  }
  return found.sort((one, other) => (one.firstSeenAt < other.firstSeenAt ? 1 : -1));
}

export function render(root, params, ctx) {
  const requests = h('div.v-list');
  const approvals = h('div.v-list');
  const invites = h('div.v-list');
  const grants = h('tbody');
  const ended = h('input', {type: 'checkbox', onchange: () => show()});
  const parts = {requests: h('div'), approvals: h('div'), invites: h('div'), grants: h('div')};
  const grantTable = table('.v-grants', ['Grant', 'Permissions', 'Used', 'Ends', ''], grants);
  page(root, 'Access', 'Who may use which apps. You decide here, and every decision is in the audit log.', may('invite.create') && h('button.primary', {onclick: inviteDialog}, 'Invite…'),
    may('admin') && [section('Requests for access', null, parts.requests), section('Approvals', null, parts.approvals)],
    may('invite.create') && section('Invites', null, parts.invites),
    section('Grants', [h('label.v-inline', ended, ' Show ended'), may('admin') && dangerButton('Revoke all…', {title: 'Revoke every grant?',
      text: 'Every grant and every open invite ends, with their connections, calls and tunnels. This page is signed out too. Only processes of the owner keep access.', action: 'Revoke all'}, () => api('DELETE', '/v1/grants'))], parts.grants));

  function place(part, content, items, none) {
    if (items.length) { if (content.parentNode !== part) fill(part, content); } else fill(part, none);
  }
  function show() {
    const open = [...store.requests.values()].filter(request => Date.parse(request.expiresAt) > Date.now());
    place(parts.requests, requests, open, h('p.v-hint', 'No client asks for access. An agent asks with ', h('code', 'patchbay join --request'), '.'));
    list(requests, open, request => request.userCode, requestCard);
    const apps = waiting();
    place(parts.approvals, approvals, apps, h('p.v-hint', 'No app waits for an approval.'));
    list(approvals, apps, endpoint => endpoint.id, approvalRow, setApproval);
    const all = [...store.invites.values()].filter(invite => !invite.endReason || ended.checked);
    place(parts.invites, invites, all, h('p.v-hint', 'No invite is open. An invite lets one client join with a code.'));
    list(invites, all, invite => invite.id, inviteRow);
    const held = [...store.grants.values()].filter(grant => !grant.endReason || ended.checked).sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
    place(parts.grants, grantTable, held, emptyView('No grants', 'Invite a client, or approve its request.'));
    list(grants, held, grant => grant.id, grantRow);
  }
  const end = subscribe(['requests', 'endpoints', 'invites', 'grants'], show);
  show();
  return end;
}

// MARK: Requests and approvals

function requestCard(request) {
  return h('article.card.v-request', {dataset: {row: ''}, tabindex: '-1'},
    h('div', h('h3', foreign(request.name)), h('p.v-sub', foreign(request.authorization?.asker ?? actorText(request.requester))), permissionsView(request.permissions)),
    h('div.v-code-check', h('code.v-user-code', foreign(request.userCode)), h('span.v-hint', 'The client shows the same code. Expires in ', time(request.expiresAt, {left: true}))),
    requestButtons(request));
}
const requestButtons = request => h('div.v-actions',
  answer(request, 'Approve', `${request.name} has access now.`, 'primary'), h('button', {onclick: () => partDialog(request)}, 'Give less…'), answer(request, 'Deny', `The request of ${request.name} is denied.`));

/** Opens the form for the approval of a part of a request. */
function partDialog(request) {
  const {scopes, selector, tools} = request.permissions;
  const boxes = SCOPES.filter(([scope]) => scopes.includes(scope)).map(([scope, word, text]) => check(h('input', {type: 'checkbox', checked: true, value: scope}), word, text));
  const ids = selector === 'all' ? [...store.endpoints.keys()].sort() : [...selector.endpoints ?? []].sort();
  const apps = h('select', {multiple: true, size: '5', 'aria-label': 'Apps'}, ids.map(id => h('option', {value: id}, id)));
  const readOnly = h('input', {type: 'checkbox'});
  formDialog({title: `Give ${printable(request.name)} less`, submit: 'Approve'}, [
    h('fieldset.v-group.v-checks', h('legend', 'It may'), boxes),
    ids.length > 0 && field('Only these apps', apps, 'Without a choice, all that it asks for.'),
    (tools ?? 'all') === 'all' && check(readOnly, 'read-only tools', 'It calls only tools that change nothing, and opens no tunnel.'),
  ], async () => {
    const endpoints = [...apps.selectedOptions].map(option => option.value);
    const kept = boxes.map(label => label.firstChild).filter(box => box.checked && !(readOnly.checked && BYPASSING.includes(box.value))).map(box => box.value);
    if (!kept.length) return 'Choose what the client may do.';
    const limits = {scopes: kept, ...endpoints.length && {selector: {endpoints}}, ...readOnly.checked && {tools: 'read-only'}};
    await api('POST', path('access-requests', request.userCode, 'approve'), limits);
    await refresh('access-requests');
  });
}

function approvalRow(endpoint) {
  const element = h('article.card.v-request', {dataset: {row: ''}, tabindex: '-1'});
  setApproval(element, endpoint);
  return element;
}
function setApproval(element, endpoint) {
  const routes = openAddresses(endpoint);
  const key = JSON.stringify([endpoint.approval, titleOf(endpoint), routes]);
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  fill(element, h('div', h('h3', appLink(endpoint.id)), h('p.v-sub', foreign(endpoint.kind), ', announced by ', foreign(routes[0].host ?? 'an unknown host', 80), ', first seen ', time(endpoint.firstSeenAt, {relative: true})),
    endpoint.approval === 'changed' && h('p.v-warning', icon('warning'), 'Another app answers at the approved address.')),
  h('ul.plain.v-addresses', routes.map(route => h('li', h('code.v-address', foreign(addressOf(route))),
    actButton(['Approve', h('span.sr', ` ${addressOf(route)} for ${endpoint.id}`)], () => approve(endpoint.id, route), `${addressOf(route)} is approved.`)))), h('div.v-actions', denyButton(endpoint)));
}

// MARK: Grants

function grantRow(grant) {
  const {binding} = grant;
  const bound = binding === 'bearer' ? 'by its token' : binding?.user !== undefined ? `user ${binding.user}` : binding?.key ? 'by its key' : binding?.socket ? ['socket ', foreign(binding.socket)] : binding?.dashboard !== undefined ? 'this page' : '';
  const isSelf = grant.id === who?.grant.id;
  const agents = [...store.agents.values()].filter(agent => agent.grant === grant.id);
  const calls = agents.reduce((sum, agent) => sum + (agent.calls ?? 0), 0);
  const name = `${grant.name} (${grant.id})`;
  return h('tr', {class: grant.endReason && 'is-ended', dataset: {row: ''}, tabindex: '-1'},
    h('th', {scope: 'row'}, foreign(grant.name), isSelf && h('span.v-tag', 'you'), h('span.v-sub', foreign(grant.id), ' · ', bound, grant.remote && ' · remote', grant.parent && [' · under ', foreign(grant.parent)])),
    h('td', permissionsView(grant.permissions)),
    h('td', {dataset: {label: 'Used'}}, time(grant.lastUsedAt, {relative: true}), agents.length > 0 && h('span.v-sub', h('a', {href: `#/activity?client=${encodeURIComponent(grant.id)}`}, `${calls} calls`))),
    h('td', {dataset: {label: grant.endReason ? 'Ended' : 'Ends in'}}, grant.endReason ? stateBadge('offline', {text: grant.endReason}) : time(grant.expiresAt, {left: true})),
    h('td.v-actions', !grant.endReason && dangerButton('Revoke', () => {
      const children = [...store.grants.values()].filter(one => one.parent === grant.id && !one.endReason).length;
      return {title: 'Revoke this grant?', action: 'Revoke', text: `${name} ends, with its connections, running calls, tunnels and leases${children ? `, and ${children} grants under it` : ''}.${isSelf ? ' This page is signed out.' : ''}`};
    }, async () => { await api('DELETE', path('grants', grant.id)); if (!isSelf) await refresh('grants'); }, `${grant.name} is revoked.`)));
}

// MARK: Notices

/** Shows open requests for access and new approvals on each page, without a sound. Returns the cleanup. */
export function mountNotices(ctx) {
  if (!may('admin')) return () => {};
  const known = new Set(waiting().map(endpoint => endpoint.id));
  const region = h('div.v-notices', {role: 'region', 'aria-label': 'Decisions'});
  const spoken = h('span.sr', {role: 'status'});
  const hidden = new Set();
  document.body.append(region, spoken);

  function show() {
    const isQuiet = document.body.classList.contains('wall') || location.hash.startsWith('#/access');
    const open = isQuiet ? [] : [...store.requests.values()].filter(request => !hidden.has(request.userCode) && Date.parse(request.expiresAt) > Date.now());
    const fresh = store.loaded ? waiting().filter(endpoint => !known.has(endpoint.id)) : [];
    // A flood of adverts must not cover the page, so further apps are a number.
    const items = [...open.slice(0, 2).map(request => ({key: request.userCode, request})), ...isQuiet ? [] : fresh.slice(0, 1).map(endpoint => ({key: endpoint.id, endpoint, more: fresh.length - 1}))];
    const before = region.childElementCount;
    list(region, items, item => item.key, card);
    if (region.childElementCount > before) setText(spoken, items.at(-1).request ? `${printable(items.at(-1).request.name)} asks for access.` : 'An app waits for an approval.');
  }
  function card({request, endpoint, more}) {
    const hide = () => { if (request) hidden.add(request.userCode); else waiting().forEach(one => known.add(one.id)); show(); };
    const close = h('button.icon-button', {'aria-label': 'Not now', title: 'Not now', onclick: hide}, icon('cross'));
    if (request) {
      return h('article.card.v-notice', h('header.v-row', h('p', foreign(request.name, 300, 'v-strong'), ' asks for access'), close),
        permissionsView(request.permissions), h('p.v-row', h('code.v-user-code', foreign(request.userCode)), h('span.v-hint', 'The client shows the same code.')), requestButtons(request));
    }
    const [route] = openAddresses(endpoint);
    return h('article.card.v-notice', h('header.v-row', h('p', foreign(titleOf(endpoint), 300, 'v-strong'), ' waits for an approval'), close),
      h('p.v-sub', h('code.v-address', foreign(addressOf(route))), ', announced by ', foreign(route.host ?? 'an unknown host')),
      h('div.v-actions', actButton('Approve', async () => { await approve(endpoint.id, route); known.add(endpoint.id); show(); }, 'Approved.', 'primary'), denyButton(endpoint, show),
        h('a.v-quiet', {href: endpointLink(endpoint.id), onclick: hide}, 'Look at it'), more > 0 && h('a', {href: '#/access', onclick: hide}, `${more} more`)));
  }
  let isReady = store.loaded;
  const end = subscribe(['requests', 'endpoints', 'connection'], () => {
    // What waited before the sign-in is no news.
    if (!isReady && store.loaded) { isReady = true; waiting().forEach(endpoint => known.add(endpoint.id)); }
    show();
  });
  addEventListener('hashchange', show);
  const timer = setInterval(show, 5000);
  show();
  return () => { end(); removeEventListener('hashchange', show); clearInterval(timer); region.remove(); spoken.remove(); };
}
