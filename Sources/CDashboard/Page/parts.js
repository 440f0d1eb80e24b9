// Parts that several views share: problems, empty states, links to apps, clients and permissions in words.
import {confirmDialog, foreign, h, notice, noticeProblem, printable} from './dom.js';
import {store, titleOf} from './store.js';

/** Shows a failed request with its next step. */
export function problemView(error, retry) {
  return h('div', {class: 'v-problem', role: 'alert'},
    h('p', {}, foreign(error?.detail ?? error?.message ?? String(error), {}, 2000)),
    error?.hint && h('p', {class: 'v-hint'}, foreign(error.hint, {}, 2000)),
    retry && h('button', {type: 'button', onclick: retry}, 'Try again'));
}

/** Says what would be in an empty place, and how it gets there. */
export const emptyView = (title, ...text) => h('div', {class: 'v-empty'}, h('p', {class: 'v-empty-title'}, title), text.length ? h('p', {}, text) : null);

/** A section with a heading and its actions on the right. */
export const section = (title, actions, ...children) =>
  h('section', {class: 'v-section'}, h('header', {class: 'v-section-head'}, h('h2', {}, title), h('div', {class: 'v-actions'}, actions)), children);

export function endpointLink(id) {
  const endpoint = store.endpoints.get(id);
  return h('a', {href: `#/e/${encodeURIComponent(id)}`}, foreign(endpoint ? titleOf(endpoint) : id), endpoint && h('span', {class: 'v-sub'}, foreign(id)));
}

/** Runs an act of a button: disables it, and reports a failure. Returns whether the act succeeded. */
export async function act(button, run, done) {
  if (button) button.disabled = true;
  try {
    await run();
    // Names in these texts are foreign.
    if (done) notice(printable(done));
    return true;
  } catch (error) {
    noticeProblem(error);
    return false;
  } finally {
    if (button) button.disabled = false;
  }
}

/** A button that asks once, and then acts. `question` is `{title, text, action}`, or a function that returns it. */
export function dangerButton(label, question, run, done) {
  return h('button', {type: 'button', class: 'v-danger', onclick: async ({currentTarget}) => {
    const asked = typeof question === 'function' ? question() : question;
    if (await confirmDialog({...asked, text: printable(asked.text, 1000), danger: true})) await act(currentTarget, run, done);
  }}, label);
}

export const SCOPES = [
  ['registry.read', 'see', 'List apps and phones and follow their changes.'],
  ['endpoint.call', 'call tools', 'Call the tools of apps.'],
  ['tunnel.open', 'open tunnels', 'Open tunnels and byte streams to apps and phones.'],
  ['secret.use', 'use tokens', 'Let the broker send the token of an app. The client never gets it.'],
  ['endpoint.register', 'register apps', 'Register an app with its address and token.'],
  ['invite.create', 'invite others', 'Create invites with at most its own permissions.'],
  ['shell', 'run commands', 'Open tunnels to servers that run commands and change files.'],
  ['secret.read', 'read tokens', 'Read the URL of a Dart VM service with its secret.'],
  ['admin', 'administer', 'Do everything that an owner may do.'],
];
const POWERFUL = ['admin', 'shell', 'secret.read', 'invite.create'];

/** Shows the scopes of permissions as words, with the limit and the apps. */
export function permissionsView({scopes = [], selector, tools} = {}) {
  const known = SCOPES.filter(([scope]) => scopes.includes(scope));
  const others = scopes.filter(scope => !known.some(([one]) => one === scope));
  return h('div', {class: 'v-permissions'},
    [...known.map(([scope, word, text]) => h('span', {class: ['v-chip', POWERFUL.includes(scope) && 'is-strong'], title: `${scope}: ${text}`}, word)), ...others.map(scope => h('span', {class: 'v-chip'}, foreign(scope)))],
    tools && tools !== 'all' && h('span', {class: 'v-chip is-limit'}, toolsText(tools)),
    h('span', {class: 'v-sub'}, ...selectorText(selector)));
}

function toolsText(tools) {
  if (tools === 'read-only') return 'read-only tools';
  return foreign(`tools: ${(tools.named ?? []).join(', ')}`);
}

export function selectorText(selector) {
  if (!selector || selector === 'all') return ['on all apps'];
  const [kind, values] = Object.entries(selector)[0] ?? [];
  const word = {endpoints: 'on ', bundles: 'on apps with the bundle ', hosts: 'on the hosts '}[kind] ?? 'on ';
  return [word, foreign((values ?? []).join(', '))];
}

/** The process or grant that acted, in words. */
export function actorText(actor) {
  if (typeof actor === 'string') return actor;
  if (actor?.grant) return `grant ${grantName(actor.grant)}`;
  if (actor?.host) return `${actor.client} on ${actor.host}`;
  if (actor?.exe) return `${actor.exe.split('/').pop()} (user ${actor.uid}, process ${actor.pid})`;
  return '';
}

export const grantName = id => store.grants.get(id)?.name ?? id;

/** A labelled field of a form. */
export function field(label, control, note) {
  return h('label', {class: 'v-field'}, h('span', {class: 'v-label'}, label), control, note && h('span', {class: 'v-field-note'}, note));
}

export const select = (options, props) => h('select', props, options.map(([value, text]) => h('option', {value}, printable(text))));

/** Splits the seconds of a lifetime into words: `8 hours`. */
export function spanText(seconds) {
  const [value, unit] = seconds % 86400 === 0 ? [seconds / 86400, 'day'] : seconds % 3600 === 0 ? [seconds / 3600, 'hour'] : seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second'];
  return `${value} ${unit}${value === 1 ? '' : 's'}`;
}

/** Tells if a key belongs to a text field, so that shortcuts leave it alone. */
export const isTyping = event => event.target.closest?.('input,textarea,select,[contenteditable]') || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]');
