// Invites: a form for what a client may do, then its QR code and a countdown until the client has joined.
import {copyButton, dialog, fill, foreign, h, icon, noticeProblem, setText, stateBadge, time} from './dom.js';
import {api, may, path} from './session.js';
import {refresh, store, subscribe} from './store.js';
import {BYPASSING, SCOPES, actorText, check, dangerButton, field, formDialog, permissionsView, select, spanText} from './parts.js';

const USES = [
  ['local', 'A client on this machine'], ['remote', 'Another machine, with its own key'], ['bearer', 'Another machine, with a token only'], ['device', 'An app, which registers itself'],
];
const HINTS = {
  local: 'It joins with `patchbay join`.', remote: 'The grant is bound to the key of the client. Needs the remote listener (`patchbay remote on`).',
  bearer: 'Anyone who has the token can use it. Needs the remote listener.', device: 'Photograph the code with the phone. The grant allows registration only.',
};
const TIMES = [600, 3600, 86400].map(value => [String(value), spanText(value)]);
const GRANT_TIMES = [3600, 28800, 86400, 604800, 2592000].map(value => [String(value), spanText(value)]);
const DEFAULT = ['registry.read', 'endpoint.call', 'tunnel.open', 'secret.use'];

/** One line of the list of invites. */
export function inviteRow(invite) {
  const joined = [...store.grants.values()].filter(grant => grant.invite === invite.id);
  return h('article.card.v-request', {class: invite.endReason && 'is-ended', dataset: {row: ''}, tabindex: '-1'},
    h('div', h('h3', foreign(invite.id)), h('p.v-sub', USES.find(([use]) => use === (invite.use ?? 'local'))?.[1] ?? '', invite.createdBy && [', by ', foreign(actorText(invite.createdBy))]), permissionsView(invite.permissions)),
    h('div', invite.endReason ? stateBadge('offline', {text: invite.endReason}) : h('span', 'ends in ', time(invite.expiresAt, {left: true})),
      h('span.v-sub', `${invite.useCount} of ${invite.maxUses} used`, invite.failedAttempts > 0 && `, ${invite.failedAttempts} wrong codes`), joined.length > 0 && h('span.v-sub', 'joined: ', foreign(joined.map(grant => grant.name).join(', ')))),
    h('div.v-actions', !invite.endReason && dangerButton('Revoke', {title: 'Revoke this invite?', text: `The code of ${invite.id} is no longer accepted. Clients that joined keep their grants.`, action: 'Revoke'},
      async () => { await api('DELETE', path('invites', invite.id)); await refresh('invites'); })));
}

/** Opens the form for a new invite. */
export function inviteDialog() {
  const use = select(USES, {onchange: show});
  const hint = h('p.v-hint');
  const boxes = SCOPES.filter(([scope]) => may(scope)).map(([scope, word, text]) => {
    const box = h('input', {type: 'checkbox', checked: DEFAULT.includes(scope), value: scope, onchange: show});
    return check(box, word, text);
  });
  const apps = select([['all', 'All apps'], ['endpoints', 'These apps'], ['bundles', 'Apps with these bundle identifiers'], ['hosts', 'Apps of these hosts']], {onchange: show});
  const endpoints = h('select', {multiple: true, size: '5', 'aria-label': 'Apps'}, [...store.endpoints.values()].sort((one, other) => one.id.localeCompare(other.id)).map(({id}) => h('option', {value: id}, id)));
  const names = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'com.example.shop', 'aria-label': 'Names, separated by spaces'});
  const tools = select([['all', 'All tools'], ['read-only', 'Read-only tools'], ['named', 'These tools']], {onchange: show});
  const toolNames = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'screenshot get_elements', 'aria-label': 'Names of tools, separated by spaces'});
  const lifetime = select(TIMES);
  const grantTime = select(GRANT_TIMES);
  grantTime.value = '28800';
  const uses = h('input.v-short', {type: 'number', min: '1', max: '100', value: '1', });
  const scopes = h('fieldset.v-group.v-checks', h('legend', 'It may'), boxes);
  const limits = h('div.v-grid', field('Apps', apps), field('Tools', tools));
  const words = input => input.value.split(/[\s,]+/).filter(Boolean);

  function show() {
    const isDevice = use.value === 'device';
    setText(hint, HINTS[use.value].replaceAll('`', ''));
    scopes.hidden = tools.parentElement.hidden = isDevice;
    endpoints.hidden = apps.value !== 'endpoints';
    names.hidden = !['bundles', 'hosts'].includes(apps.value);
    toolNames.hidden = isDevice || tools.value !== 'named';
    for (const label of boxes) {
      const box = label.firstChild;
      const scope = box.value;
      const isLocalOnly = scope === 'admin' || scope === 'secret.read';
      // The broker refuses these combinations, so the form does not offer them.
      box.disabled = tools.value !== 'all' && BYPASSING.includes(scope) || isLocalOnly && use.value !== 'local';
      label.classList.toggle('is-off', box.disabled);
    }
  }
  async function create() {
    const isDevice = use.value === 'device';
    const chosen = apps.value === 'endpoints' ? [...endpoints.selectedOptions].map(option => option.value) : words(names);
    if (apps.value !== 'all' && !chosen.length) return 'Choose at least one app.';
    const permissions = {
      scopes: isDevice ? ['endpoint.register'] : boxes.map(label => label.firstChild).filter(box => box.checked && !box.disabled).map(box => box.value),
      selector: apps.value === 'all' ? 'all' : {[apps.value]: chosen},
      ...!isDevice && tools.value !== 'all' && {tools: tools.value === 'named' ? {named: words(toolNames)} : 'read-only'},
    };
    if (!permissions.scopes.length) return 'Choose what the client may do.';
    const issued = await api('POST', '/v1/invites?qr=true', {permissions, use: use.value, maxUses: Math.round(Number(uses.value)) || 1, lifetimeSeconds: Number(lifetime.value), grantLifetimeSeconds: Number(grantTime.value)});
    opened.close();
    showInvite(issued);
    refresh('invites').catch(noticeProblem);
  }
  const opened = formDialog({title: 'Invite a client', submit: 'Create the invite', wide: true}, [field('Who joins', use), hint, scopes, limits, endpoints, names, toolNames,
    h('div.v-grid', field('The code is valid for', lifetime), field('The grant is valid for', grantTime), field('Clients', uses))], create);
  show();
}

/** Shows the code of a new invite until it is closed. The code is a secret, and no later answer has it. */
function showInvite({invite, token, pairing, qr, addresses}) {
  const secret = pairing ?? token;
  const joined = h('div.v-joined', {role: 'status'});
  const shown = h('code.v-secret', foreign(secret, 2000));
  const command = invite.use === 'device' ? null : h('p.v-hint', 'On the client run ', h('code', 'patchbay join'), ' and paste the code.');
  const body = h('div.v-invite', Array.isArray(qr) && qrCode(qr),
    h('div.v-invite-text', h('p', 'Ends in ', time(invite.expiresAt, {left: true}), '. The code is shown once.'), h('div.v-row', shown, copyButton(secret, 'Copy the code')), command,
      addresses?.length > 1 && h('p.v-hint', 'The broker has the addresses ', foreign(addresses.join(', ')), '.'), permissionsView(invite.permissions), joined));
  const {closed} = dialog({title: `Invite ${invite.id}`, body, wide: true});
  const show = () => {
    const grants = [...store.grants.values()].filter(grant => grant.invite === invite.id);
    const now = store.invites.get(invite.id);
    if (grants.length) fill(joined, grants.map(grant => h('p.v-join', icon('check'), foreign(grant.name, 300, 'v-strong'), ' has joined')));
    else fill(joined, h('p.v-hint', now?.endReason ? `The invite has ended: ${now.endReason}.` : 'Waiting for the client…'));
    body.classList.toggle('is-over', Boolean(now?.endReason));
  };
  const end = subscribe(['grants', 'invites'], show);
  show();
  closed.then(end);
}

/** Draws a QR code with its quiet zone of four modules. Always dark on light, because readers need that. */
function qrCode(rows) {
  const size = rows.length + 8;
  const canvas = h('canvas.v-qr', {width: String(size * 8), height: String(size * 8), role: 'img', 'aria-label': 'QR code of the invite'});
  const context = canvas.getContext('2d');
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = '#000';
  rows.forEach((row, y) => [...row].forEach((module, x) => { if (module === '1') context.fillRect((x + 4) * 8, (y + 4) * 8, 8, 8); }));
  return canvas;
}
