// Parts that several views share: problems, empty states, links to apps, clients and permissions in words.
import {confirmDialog, dialog, fill, foreign, h, icon, notice, noticeProblem, printable} from './dom.js';
import {api, path} from './session.js';
import {deviceLink, endpointLink} from './rows.js';
import {deviceName, refresh, store, titleOf} from './store.js';

/** Shows a failed request with its next step. */
export function problemView(error, retry) {
  return h('div.v-problem', {role: 'alert'},
    h('p', foreign(error?.detail ?? error?.message ?? String(error), 2000)),
    error?.hint && h('p.v-hint', foreign(error.hint, 2000)),
    retry && h('button', {onclick: retry}, 'Try again'));
}

/** Says what would be in an empty place, and how it gets there. */
export const emptyView = (title, ...text) => h('div.empty', h('h2', title), text.length > 0 && h('p', text));

/** Fills a view with its heading, a sentence about it, its actions on the right, and its content. */
export const page = (root, title, facts, actions, ...content) => fill(root, h('div.v-page',
  h('header.v-head', h('div.v-head-main', h('h1', title), facts instanceof Node ? facts : h('p.v-facts', facts)), h('div.v-actions', actions)), content));

/** A table with the headings of its columns. An empty heading is that of the actions. */
export const table = (classes, columns, ...body) => h('div.v-scroll', h(`table.v-table${classes}`,
  h('thead', h('tr', columns.map(text => h('th', {scope: 'col'}, text || h('span.sr', 'Actions'))))), body));

/** A section with a heading and its actions on the right. */
export const section = (title, actions, ...children) =>
  h('section.v-section', h('header.v-section-head', h('h2', title), h('div.v-actions', actions)), children);

/** A link to an app, with its name and its ID. */
export function appLink(id) {
  const endpoint = store.endpoints.get(id);
  return h('a', {href: endpointLink(id)}, foreign(endpoint ? titleOf(endpoint) : id), endpoint && h('span.v-sub', foreign(id)));
}

/** A link to a phone, with its name. */
export const phoneLink = (device, ...more) => h('a', {href: deviceLink(device.udid)}, icon('phone'), ' ', foreign(deviceName(store.devices.get(device.udid) ?? device)), more);

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

/** A button that acts. */
export const actButton = (label, run, done, classes) => h('button', {class: classes, onclick: ({currentTarget}) => act(currentTarget, run, done)}, label);

/** A button that asks once, and then acts. `question` is `{title, text, action}`, or a function that returns it. */
export function dangerButton(label, question, run, done) {
  return h('button.danger', {onclick: async ({currentTarget}) => {
    const asked = typeof question === 'function' ? question() : question;
    if (await confirmDialog({...asked, text: printable(asked.text, 1000), danger: true})) await act(currentTarget, run, done);
  }}, label);
}

/** A button that ends a lease: at once if it is the session's own, and after a question if it is another's. */
export function endLeaseButton(lease, label, done) {
  const run = async () => {
    await api('DELETE', path('leases', lease.id));
    await refresh('leases').catch(() => {});
    done?.();
  };
  return lease.own ? actButton(label, run, 'The lease has ended.') : dangerButton('Break…', () => ({title: 'Break this lease?', action: 'Break the lease',
    text: `The lease of ${lease.holder} on ${lease.endpoint} ends now${lease.device ? ', also for the other apps of the phone' : ''}. Its running calls may fail.${lease.waiting ? ' The next waiting client gets it.' : ''}`}), run, 'The lease is broken.');
}

/**
 * Opens a dialog with a form. `run` sends it; a text that it returns, or the problem that it throws, shows in the form.
 * Otherwise the dialog closes.
 */
export function formDialog({title, submit, wide}, fields, run) {
  const status = h('p.v-error', {role: 'alert'});
  const button = h('button.primary', {type: 'submit'}, submit);
  const form = h('form.v-form-body', {onsubmit: async event => {
    event.preventDefault();
    button.disabled = true;
    try {
      const problem = await run(status);
      if (!problem) opened.close();
      fill(status, problem);
    } catch (error) {
      if (error.name !== 'AbortError') fill(status, `${error.message} ${error.hint ?? ''}`);
    }
    button.disabled = false;
  }}, fields, status, h('div.v-actions', button));
  const opened = dialog({title, body: form, wide});
  return opened;
}

/** The scopes whose holder can bypass a limit to certain tools. */
export const BYPASSING = ['tunnel.open', 'shell', 'secret.read', 'admin'];

/** A box of a form, with what it means. */
export const check = (box, label, text) => h('label.v-check', box, h('span', h('b', label), h('span.v-sub', text)));

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
  return h('div.v-permissions',
    [...known.map(([scope, word, text]) => h('span.v-chip', {class: POWERFUL.includes(scope) && 'is-strong', title: `${scope}: ${text}`}, word)), ...others.map(scope => h('span.v-chip', foreign(scope)))],
    tools && tools !== 'all' && h('span.v-chip.is-limit', toolsText(tools)),
    h('span.v-sub', ...selectorText(selector)));
}

function toolsText(tools) {
  if (tools === 'read-only') return 'read-only tools';
  return foreign(`tools: ${(tools.named ?? []).join(', ')}`);
}

function selectorText(selector) {
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

const grantName = id => store.grants.get(id)?.name ?? id;

/** A labelled field of a form. */
export function field(label, control, note) {
  return h('label.v-field', h('span.v-label', label), control, note && h('span.v-field-note', note));
}

export const select = (options, props) => h('select', props, options.map(([value, text]) => h('option', {value}, printable(text))));

/** Sets the options of a filter and its value, but not while a person chooses. `options` are pairs of a value and a text. */
export function setOptions(control, all, options, value) {
  const key = JSON.stringify(options);
  if (control.dataset.options !== key && document.activeElement !== control) {
    control.dataset.options = key;
    fill(control, [['', all], ...options].map(([value, text]) => h('option', {value}, printable(text, 60))));
  }
  if (control.value !== value) control.value = value;
}

/** Returns an observer that calls `load` once for each observed element when it comes into sight of `root`. */
export function onSight(root, load) {
  const watcher = new IntersectionObserver(entries => {
    for (const {isIntersecting, target} of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      load(target);
    }
  }, {root, rootMargin: '150px'});
  return watcher;
}

/** Splits the seconds of a lifetime into words: `8 hours`. */
export function spanText(seconds) {
  const [value, unit] = seconds % 86400 === 0 ? [seconds / 86400, 'day'] : seconds % 3600 === 0 ? [seconds / 3600, 'hour'] : seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second'];
  return `${value} ${unit}${value === 1 ? '' : 's'}`;
}

/** Tells if a key belongs to a text field, so that shortcuts leave it alone. */
export const isTyping = event => event.target.closest?.('input,textarea,select,[contenteditable]') || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]');
