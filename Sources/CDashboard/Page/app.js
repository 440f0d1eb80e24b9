// The shell: sign-in, navigation, routes, keys and the state of the connection.
//
// A view module exports `title` and `render(root, params, ctx)`, which returns its cleanup. `params` has `id` or `udid`
// of the route, and `query` (URLSearchParams). `ctx` has `navigate(hash)`, `setTitle(text)` and `setQuery(changes)`,
// which replaces the query of the address without rendering again.
import {clockText, codeLine, dialog, fill, h, icon, notice, noticeProblem} from './dom.js';
import {exchange, may, onSession, restore, signOut, useToken, who} from './session.js';
import {store, subscribe} from './store.js';

const ROUTES = [
  [/^\/?$/, () => import('./bench.js')],
  [/^\/e\/(?<id>[^/?]+)$/, () => import('./endpoint.js')],
  [/^\/d\/(?<udid>[^/?]+)$/, () => import('./device.js')],
  [/^\/activity$/, () => import('./activity.js')],
  [/^\/access$/, () => import('./access.js')],
  [/^\/tunnels$/, () => import('./tunnels.js')],
  [/^\/leases$/, () => import('./leases.js')],
  [/^\/use$/, () => import('./use.js')],
  [/^\/wall$/, () => import('./wall.js')],
];
const NAV = [
  ['#/', 'Bench', 'bench', 'b'], ['#/activity', 'Activity', 'pulse', 'a'], ['#/tunnels', 'Tunnels', 'tunnel', 't'],
  ['#/leases', 'Leases', 'lock', 'l'], ['#/access', 'Access', 'key', 'c'], ['#/use', 'Use', 'chart', 'u'], ['#/wall', 'Wall', 'screen', 'w'],
];
const main = document.getElementById('main');
const header = document.getElementById('top');
let current = {cleanup: null, path: null, number: 0};
let stopNotices = null;

const ctx = {
  navigate: (hash) => { location.hash = hash; },
  setTitle: (text) => { document.title = text ? `${text} · Patchbay` : 'Patchbay'; },
  setQuery(changes) {
    const {path, query} = address();
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === '') query.delete(key);
      else query.set(key, value);
    }
    const text = query.toString();
    history.replaceState(null, '', `#${path}${text ? `?${text}` : ''}`);
  },
};

function address() {
  const [path, query] = (location.hash.slice(1) || '/').split(/\?(.*)/s);
  return {path, query: new URLSearchParams(query ?? '')};
}

function decoded(groups) {
  try {
    return Object.fromEntries(Object.entries(groups ?? {}).map(([key, value]) => [key, decodeURIComponent(value)]));
  } catch {
    return {};
  }
}

function leave() {
  try {
    current.cleanup?.();
  } catch (error) {
    reportError(error);
  }
  current.cleanup = null;
}

async function show({focus = false} = {}) {
  if (!who) return;
  const {path, query} = address();
  const number = ++current.number;
  sessionStorage.setItem('patchbay.view', location.hash || '#/');
  const found = ROUTES.map(([pattern, load]) => [pattern.exec(path), load]).find(([match]) => match);
  document.body.classList.toggle('wall', path === '/wall');
  markNav(path);
  try {
    const view = await (found ? found[1]() : Promise.resolve(null));
    if (number !== current.number) return;
    leave();
    fill(main);
    main.className = '';
    if (!view) {
      ctx.setTitle('Not found');
      fill(main, h('div.empty', h('h1', 'There is no such view'), h('p', h('a', {href: '#/'}, 'Go to the bench'))));
    } else {
      ctx.setTitle(view.title);
      current.cleanup = view.render(main, {...decoded(found[0].groups), query}, ctx);
    }
  } catch (error) {
    reportError(error);
    fill(main, h('div.empty', h('h1', 'This view could not be shown'), h('p', String(error?.message ?? error)),
      h('button', {onclick: () => location.reload()}, 'Reload')));
  }
  if (current.path !== path) scrollTo(0, 0);
  current.path = path;
  if (focus) main.focus({preventScroll: true});
}

function markNav(path) {
  for (const link of document.querySelectorAll('#nav a')) {
    const target = link.getAttribute('href').slice(1);
    const isCurrent = target === '/' ? path === '/' || /^\/[ed]\//.test(path) : path === target;
    if (!isCurrent) {
      link.removeAttribute('aria-current');
      continue;
    }
    link.setAttribute('aria-current', 'page');
    // On a narrow screen the links are in one line that scrolls.
    link.parentElement.scrollLeft = link.offsetLeft - 60;
  }
}

function showShell() {
  const visible = NAV.filter(([target]) => target !== '#/access' || may('invite.create') || who.isOwner);
  fill(document.getElementById('nav'), visible.map(([target, label, picture]) =>
    h('a', {href: target}, icon(picture), h('span', label), target === '#/access' ? h('span.count', {id: 'count-access', hidden: true}) : null)));
  fill(document.getElementById('account'),
    h('span.account-name', {title: who.isOwner ? 'You have the rights of the owner.' : `Scopes: ${[...who.scopes].join(', ')}`},
      h('bdi.cut', who.name), h('small', who.isOwner ? 'owner' : 'limited')),
    h('button.icon-button', {title: 'Light or dark', 'aria-label': 'Light or dark', onclick: switchTheme}, themeIcon()),
    h('button.icon-button.keys', {title: 'Keys (?)', 'aria-label': 'Show keys', onclick: showKeys}, '?'),
    h('button.quiet', {onclick: () => signOut().catch(noticeProblem)}, 'Sign out'));
  header.hidden = false;
  countRequests();
}

function countRequests() {
  const count = document.getElementById('count-access');
  if (!count) return;
  count.hidden = store.requests.size === 0;
  count.textContent = store.requests.size;
  count.title = `${store.requests.size} open requests for access`;
}

const themeIcon = () => h('span.theme', {'aria-hidden': 'true'});
function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
function switchTheme() {
  const isDark = getComputedStyle(document.documentElement).getPropertyValue('--is-dark').trim() === '1';
  localStorage.setItem('patchbay.theme', isDark ? 'light' : 'dark');
  applyTheme(isDark ? 'light' : 'dark');
}

function showSignIn(problem) {
  leave();
  current.number += 1;
  header.hidden = true;
  stopNotices?.();
  stopNotices = null;
  fill(document.getElementById('notices'));
  document.body.classList.remove('wall');
  ctx.setTitle('Sign in');
  const message = h('p.v-error', {role: 'alert'}, problem ? `${problem.message} ${problem.hint ?? ''}` : '');
  const field = h('input', {type: 'password', id: 'token', name: 'token', autocomplete: 'off', spellcheck: 'false', required: true,
    placeholder: 'pbg_…', 'aria-describedby': 'token-help'});
  const button = h('button', {type: 'submit'}, 'Sign in');
  const form = h('form', {onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const text = field.value.trim();
    // The address of `patchbay dashboard` is accepted too, for a terminal that does not open links.
    const code = /#code=([^&\s]+)/.exec(text)?.[1];
    try {
      await (code ? exchange(code) : useToken(text));
    } catch (error) {
      fill(message, error.status === 401 && !code ? 'The token is not valid, or its grant has ended.' : `${error.message} ${error.hint ?? ''}`);
      field.select();
    }
    button.disabled = false;
  }}, h('label', {htmlFor: 'token'}, 'Or paste the token of a grant'), h('div.joined', field, button),
  h('small', {id: 'token-help'}, 'It stays in this tab and is sent to this broker only.'));
  fill(main, h('section.sign-in', h('h1', 'Patchbay'), h('p', 'Run this command on the machine of the broker. It opens this page signed in.'),
    codeLine('patchbay dashboard', 'Copy the command'), message, form));
  main.className = '';
  field.focus();
}

const KEYS = [['/', 'Search'], ['j, k or arrows', 'Next or previous row'], ['Enter', 'Open'], ['Esc', 'Close, or clear the search'],
  ...NAV.map(([, label, , key]) => [`g ${key}`, `Go to ${label}`]), ['?', 'Show keys']];
function showKeys() {
  if (document.querySelector('dialog[open]')) return;
  dialog({title: 'Keys', body: h('dl.keys-list', KEYS.map(([key, text]) => [h('dt', h('kbd', key)), h('dd', text)]))});
}

function step(by) {
  const rows = [...main.querySelectorAll('[data-row]')].filter((row) => row.offsetParent !== null || row.checkVisibility?.());
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement.closest?.('[data-row]'));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  next.focus({preventScroll: true});
  next.scrollIntoView({block: 'nearest'});
  return true;
}

let pendingGo = 0;
addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !who) return;
  const typing = event.target.closest?.('input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable],[data-keys]');
  if (event.key === 'Escape' && event.target.matches?.('[data-search]')) {
    if (event.target.value) {
      event.target.value = '';
      event.target.dispatchEvent(new Event('input', {bubbles: true}));
    } else event.target.blur();
    return;
  }
  if (event.key === 'ArrowDown' && event.target.matches?.('[data-search]')) {
    if (step(1)) event.preventDefault();
    return;
  }
  if (typing || document.querySelector('dialog[open]')) return;
  if (performance.now() - pendingGo < 1500) {
    pendingGo = 0;
    const found = NAV.find(([, , , key]) => key === event.key);
    if (found) {
      location.hash = found[0];
      event.preventDefault();
      return;
    }
  }
  if (document.body.classList.contains('wall')) {
    if (event.key === 'Escape') location.hash = '#/';
    return;
  }
  if (event.key === 'g') pendingGo = performance.now();
  else if (event.key === '/') {
    const search = main.querySelector('[data-search]');
    if (!search) return;
    search.focus();
    search.select();
    event.preventDefault();
  } else if (event.key === '?') showKeys();
  else if ((event.key === 'j' || event.key === 'ArrowDown') && step(1)) event.preventDefault();
  else if ((event.key === 'k' || event.key === 'ArrowUp') && step(-1)) event.preventDefault();
});

function showConnection() {
  const banner = document.getElementById('connection');
  const {state, since} = store.connection;
  const stale = who && state === 'stale';
  document.body.classList.toggle('stale', Boolean(stale));
  if (!stale) {
    if (banner.dataset.state === 'stale') notice('Connected again.', {brief: true});
    banner.dataset.state = '';
    fill(banner);
    return;
  }
  banner.dataset.state = 'stale';
  fill(banner, h('i.spinner', {'aria-hidden': 'true'}), h('span', 'Disconnected, showing the state of ', h('strong', clockText(since)), '. The page returns by itself.'));
}

async function signedIn() {
  showShell();
  await show();
  if (stopNotices) return;
  stopNotices = () => {};
  try {
    const {mountNotices} = await import('./access.js');
    if (who && mountNotices) stopNotices = mountNotices(ctx) ?? stopNotices;
  } catch (error) {
    reportError(error);
  }
  // A view that is loaded already also opens while the broker is away.
  setTimeout(() => { for (const [, load] of ROUTES) load().catch(() => {}); }, 2000);
}

applyTheme(localStorage.getItem('patchbay.theme'));
let started = false;
onSession((isSignedIn) => {
  if (isSignedIn) signedIn();
  else if (started) showSignIn(null);
});
subscribe('connection', showConnection);
subscribe('requests', countRequests);
addEventListener('hashchange', () => {
  if (!location.hash.startsWith('#/') && location.hash !== '') return;
  show({focus: true});
});
addEventListener('code-refused', ({detail}) => (who ? noticeProblem(detail) : showSignIn(detail)));
document.querySelector('.skip').addEventListener('click', (event) => {
  // The address belongs to the views.
  event.preventDefault();
  main.focus();
});

async function start() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    try {
      const problem = await restore();
      started = true;
      if (!who) showSignIn(problem);
      return;
    } catch {
      // The broker restarts: the page keeps its session and tries again.
      fill(main, h('div.empty', h('h1', 'The broker does not answer'), h('p', 'The page tries again by itself.')));
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
start();
