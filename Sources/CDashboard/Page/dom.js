// Elements, lists, times, dialogs and notices. Text reaches the page only as text nodes, so no name can become markup.

const SVG = 'http://www.w3.org/2000/svg';
const SAFE_LINK = /^(?:https?:\/\/|#|\.{0,2}\/(?!\/))/i;
// Control characters have no glyph, and bidi controls reorder what follows, so both are shown by their code.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a link's target if it is relative, http or https; otherwise null. */
export const safeLink = (url) => (SAFE_LINK.test(String(url)) ? String(url) : null);

function build(make, name, children) {
  const [tag, ...classes] = name.split('.');
  const element = make(tag);
  if (tag === 'button') element.type = 'button';
  const props = children[0]?.constructor === Object ? children.shift() : {};
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on') && typeof value === 'function') element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === 'class') classes.push(...[value].flat().filter(Boolean));
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === 'href' || name === 'src') {
      if (safeLink(value) || (name === 'src' && /^(blob:|data:image\/)/.test(value))) element.setAttribute(name, value);
    } else if (['value', 'checked', 'disabled', 'selected', 'open', 'hidden', 'indeterminate'].includes(name)) element[name] = value;
    else if (!/^(srcdoc|innerHTML|outerHTML|action|formaction)$/i.test(name)) {
      element.setAttribute(name === 'htmlFor' ? 'for' : name, value === true ? '' : value);
    }
  }
  if (classes.length) element.setAttribute('class', classes.join(' '));
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Builds an HTML element: `h('button.primary', {onclick: f}, 'Approve')`. The properties may be left out. */
export const h = (name, ...children) => build((tag) => document.createElement(tag), name, children);
/** Builds an SVG element. */
export const svg = (name, ...children) => build((tag) => document.createElementNS(SVG, tag), name, children);
/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}
/** Sets a text only if it changed, because a write costs a layout. */
export function setText(element, text) {
  const shown = String(text ?? '');
  if (element.textContent !== shown) element.textContent = shown;
}

/** Returns foreign text for display: cut to a length, with hidden characters shown by their code. */
export function printable(text, limit = 300) {
  const whole = String(text ?? '');
  const shown = whole.length > limit ? `${whole.slice(0, limit)}…` : whole;
  return shown.replace(HIDDEN, (c) => `‹${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`);
}
/** Builds foreign text that cannot reorder its surroundings. A long one is whole in its tooltip. */
export const foreign = (text, limit = 300, classes = null) =>
  h('bdi', {class: classes, title: String(text ?? '').length > 40 && printable(text, 1000)}, printable(text, limit));
export function setForeign(element, text, limit = 300) {
  const shown = printable(text, limit);
  if (element.textContent === shown) return;
  element.textContent = shown;
  if (shown.length > 40) element.title = printable(text, 1000);
  else element.removeAttribute('title');
}

const rows = new WeakMap();
let runs = 0;
// moveBefore keeps focus and scroll position; browsers without it get the focus back by hand.
function place(parent, element, before) {
  if (element.parentNode === parent && parent.moveBefore) return parent.moveBefore(element, before);
  const focused = element.parentNode === parent && element.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(element, before);
  focused?.focus({preventScroll: true});
}

/**
 * Makes the children of `parent` equal to `items`, by key. `update(element, item, previous)` runs only for an item that
 * is another object than before; without one, the content is built again. Elements that `list` did not build stay at
 * the end.
 */
export function list(parent, items, key, render, update = (element, item) => element.replaceChildren(...render(item).childNodes)) {
  const known = rows.get(parent) ?? new Map();
  const run = runs += 1;
  const elements = [];
  for (const item of items) {
    const id = key(item);
    let row = known.get(id);
    if (row?.run === run) continue;
    if (!row) known.set(id, row = {element: render(item)});
    else if (row.item !== item) update(row.element, item, row.item);
    row.item = item;
    row.run = run;
    elements.push(row.element);
  }
  for (const [id, {run: last, element}] of known) {
    if (last === run) continue;
    known.delete(id);
    if (element.contains(document.activeElement)) focusNeighbour(element);
    element.remove();
  }
  let cursor = parent.firstChild;
  for (const element of elements) {
    // One element that moved down would make all others move up, so it makes place first.
    if (cursor && cursor !== element && cursor.nextSibling === element) {
      const moved = cursor;
      cursor = element;
      place(parent, moved, null);
    }
    if (cursor === element) cursor = element.nextSibling;
    else place(parent, element, cursor);
  }
  rows.set(parent, known);
}

// A removed row gives its focus to the next one, so that the keyboard does not start again at the top.
function focusNeighbour(element) {
  const other = element.nextElementSibling ?? element.previousElementSibling;
  const target = other?.matches('a[href],button,[tabindex]') ? other : other?.querySelector('a[href],button,[tabindex]');
  target?.focus({preventScroll: true});
}

const exact = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
const clock = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const day = new Intl.DateTimeFormat(undefined, {month: 'short', day: 'numeric'});
const times = new Set();

/** Returns a time of today as a clock, and another one with its date. */
export function clockText(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  return new Date().toDateString() === date.toDateString() ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

function relativeText(milliseconds) {
  const ahead = milliseconds < 0;
  const seconds = Math.abs(milliseconds) / 1000;
  const [value, unit, step] =
    seconds < 60 ? [Math.floor(seconds), 's', 1] : seconds < 3600 ? [Math.floor(seconds / 60), 'min', 60]
    : seconds < 172800 ? [Math.floor(seconds / 3600), 'h', 3600] : [Math.floor(seconds / 86400), 'd', 86400];
  const text = unit === 's' && value < 5 && !ahead ? 'now' : `${value} ${unit}`;
  return [text === 'now' || ahead ? text : `${text} ago`, (ahead ? seconds % step : step - (seconds % step)) * 1000 + 20];
}

function showTime(element, now) {
  const at = element.at;
  if (element.kind === 'left') {
    const left = at - now;
    setText(element, left <= 0 ? 'ended' : left < 60000 ? `${Math.ceil(left / 1000)} s` : left < 3600000
      ? `${Math.floor(left / 60000)}:${String(Math.floor(left / 1000) % 60).padStart(2, '0')} min` : duration(left));
    element.next = now + 1000 - (now % 1000);
    return;
  }
  const [text, next] = relativeText(now - at);
  setText(element, text);
  element.next = now + next;
}

setInterval(() => {
  if (document.hidden) return;
  const now = Date.now();
  for (const element of times) {
    if (element.isConnected) {
      element.waits = 0;
      if (now >= element.next) showTime(element, now);
    } else if (++element.waits > 30) times.delete(element);
  }
}, 1000);

/** Builds a time: a clock, with `{relative: true}` an age ("3 min ago"), with `{left: true}` a countdown. */
export function time(iso, {relative = false, left = false} = {}) {
  const element = h('time');
  element.kind = left ? 'left' : relative ? 'age' : 'clock';
  setTime(element, iso);
  return element;
}
export function setTime(element, iso) {
  if (element.iso === iso) return;
  element.iso = iso;
  const date = new Date(iso ?? NaN);
  if (Number.isNaN(date.getTime())) {
    times.delete(element);
    setText(element, '');
    element.removeAttribute('datetime');
    element.removeAttribute('title');
    return;
  }
  element.dateTime = date.toISOString();
  element.title = exact.format(date);
  if (element.kind === 'clock') return setText(element, clockText(iso));
  Object.assign(element, {at: date.getTime(), waits: 0});
  times.add(element);
  showTime(element, Date.now());
}

/** Returns an amount in decimal units, as the command line does: "2.4 kB". */
export function bytes(n) {
  if (!(n >= 0)) return '';
  let [value, unit] = [n, 0];
  while (value >= 999.5 && unit < 4) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}
/** Returns a time span: "840 ms", "1.2 s", "3 min 4 s", "2 h 5 min". */
export function duration(ms) {
  if (!(ms >= 0)) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const [big, small, units] = seconds < 3600 ? [seconds / 60, seconds % 60, ['min', 's']] : [seconds / 3600, (seconds / 60) % 60, ['h', 'min']];
  return `${Math.floor(big)} ${units[0]}${Math.floor(small) ? ` ${Math.floor(small)} ${units[1]}` : ''}`;
}

const ICONS = {
  phone: 'M5 1.5h6a1 1 0 0 1 1 1v11a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-11a1 1 0 0 1 1-1ZM7 12.5h2',
  machine: 'M2 3h12v8H2zM5.5 14h5M8 11v3',
  host: 'M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.75h.01M5 11.25h.01',
  cable: 'M5.5 1.5v4M10.5 1.5v4M3.5 5.5h9V8a4.5 4.5 0 0 1-9 0zM8 12.5v2',
  wifi: 'M1.5 6a9.5 9.5 0 0 1 13 0M4 8.8a5.8 5.8 0 0 1 8 0M6.3 11.4a2.6 2.6 0 0 1 3.4 0M8 13.5h.01',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  check: 'm3 8.5 3.2 3.2L13 4.8',
  cross: 'm4 4 8 8M12 4l-8 8',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.4 10.4 14 14',
  lock: 'M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2',
  agent: 'M3 5.5h10v7H3zM8 5.5v-3M6 8.5v1M10 8.5v1M1.5 8v2M14.5 8v2',
  tunnel: 'M2 13V9a6 6 0 0 1 12 0v4M5.5 13V9.5a2.5 2.5 0 0 1 5 0V13',
  pulse: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  warning: 'M8 2 1.5 13.5h13zM8 6.5v3.2M8 11.6h.01',
  information: 'M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM8 7.2v4M8 4.8h.01',
  chevron: 'm6 3.5 4.5 4.5L6 12.5',
  bench: 'M2 2.5h5v5H2zM9 2.5h5v5H9zM2 9h5v5H2zM9 9h5v5H9z',
  key: 'M5.5 6.5a3 3 0 1 1 0 5 3 3 0 0 1 0-5ZM8 9h6.5v2.5M11.5 9v2',
  chart: 'M2 14h12M4 11V8M8 11V3M12 11V6',
  screen: 'M1.5 3h13v8.5h-13zM5 14h6',
};
/** Builds an icon of 16 px that a screen reader skips. */
export const icon = (name, props) => svg('svg', {class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', ...props}, svg('path', {d: ICONS[name]}));

const STATES = {
  online: 'online', active: 'online', approved: 'online', ok: 'online', live: 'online',
  suspect: 'suspect', waiting: 'suspect', connecting: 'suspect', stale: 'suspect', starting: 'suspect', unknown: 'suspect', cancelled: 'offline',
  offline: 'offline', off: 'offline', blocked: 'blocked', failed: 'blocked', error: 'blocked', missing: 'blocked', problem: 'blocked',
  pending: 'pending', changed: 'pending', locked: 'pending', unauthorized: 'pending', 'no-permissions': 'pending', unavailable: 'pending', warning: 'pending', refused: 'pending', running: 'running', information: 'running',
};
/** Builds a state as colour, shape and text. With `{label: false}` only a screen reader gets the text. */
export function stateBadge(state, {label = true, text} = {}) {
  const element = h('span.state', h('i.shape', {'aria-hidden': 'true'}), h('span', {class: label ? '' : 'sr'}));
  setState(element, state, text);
  return element;
}
export function setState(element, state, text) {
  const name = `state state-${STATES[state] ?? 'offline'}`;
  if (element.className !== name) element.className = name;
  setText(element.lastChild, text ?? state ?? 'unknown');
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h('textarea.sr', {value: text});
    (document.querySelector('dialog[open]:last-of-type') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('the browser does not allow a copy');
  }
}
/** Builds a button that copies a text, or what a function returns at that moment. */
export function copyButton(text, label = 'Copy') {
  const button = h('button.copy.icon-button', {title: label, 'aria-label': label}, icon('copy'));
  button.addEventListener('click', async (event) => {
    event.preventDefault();
    event.stopPropagation();
    try {
      await copy(typeof text === 'function' ? text() : text);
      fill(button, icon('check'));
      notice('Copied.', {brief: true});
      setTimeout(() => fill(button, icon('copy')), 1500);
    } catch (error) {
      notice(`Not copied: ${error.message}`, {kind: 'problem'});
    }
  });
  return button;
}
/** Builds a command or an address with its copy button. */
export const codeLine = (text, label = `Copy ${String(text).slice(0, 60)}`) =>
  h('div.code-line', h('code', printable(text, 4000)), copyButton(text, label));

/** Opens a modal dialog. `Esc` and its close button close it; `closed` is fulfilled with the value of `close(value)`. */
export function dialog({title, body, actions = [], wide = false, label}) {
  const opener = document.activeElement;
  const heading = h('h2', title);
  heading.id = `dialog-${Math.random().toString(36).slice(2)}`;
  let resolve;
  const closed = new Promise((done) => { resolve = done; });
  const element = h('dialog', {class: wide ? 'dialog wide' : 'dialog', 'aria-labelledby': heading.id},
    h('header', heading, h('button.icon-button', {'aria-label': label ?? 'Close', onclick: () => close()}, icon('cross'))),
    h('div.dialog-body', body),
    actions.length > 0 && h('footer', actions));
  function close(value) {
    if (!element.isConnected) return;
    element.close();
    element.remove();
    if (opener?.isConnected) opener.focus({preventScroll: true});
    resolve(value);
  }
  element.addEventListener('cancel', (event) => { event.preventDefault(); close(); });
  element.addEventListener('mousedown', (event) => { if (event.target === element) close(); });
  document.body.append(element);
  element.showModal();
  return {element, close, closed};
}

/** Asks once before an act. The text names what ends. Returns a promise of true or false. */
export async function confirmDialog({title, text, action, danger = false}) {
  let opened;
  const cancel = h('button', {onclick: () => opened.close(false)}, 'Cancel');
  const go = h('button', {class: danger ? 'danger' : 'primary', onclick: () => opened.close(true)}, action);
  opened = dialog({title, body: text instanceof Node ? text : h('p', text), actions: [cancel, go]});
  (danger ? cancel : go).focus();
  return (await opened.closed) === true;
}

/** Shows a text that a screen reader announces when it is idle. `action` is `{label, run}`; without one it goes by itself. */
export function notice(text, {kind = 'information', action, brief = false, sticky = false} = {}) {
  const region = document.getElementById('notices');
  const element = h('div', {class: `notice notice-${kind}`}, text instanceof Node ? text : h('span', text),
    action ? h('button', {onclick: () => { dismiss(); action.run(); }}, action.label) : null,
    h('button.icon-button', {'aria-label': 'Dismiss', onclick: dismiss}, icon('cross')));
  function dismiss() { element.remove(); }
  // The same text again replaces the earlier one.
  for (const other of region?.children ?? []) if (other.textContent === element.textContent) other.remove();
  region?.append(element);
  while (region?.childElementCount > 5) region.firstElementChild.remove();
  if (!sticky && !action) setTimeout(dismiss, brief ? 2000 : kind === 'problem' ? 12000 : 6000);
  return {element, dismiss};
}
/** Shows a failed request with its next step. */
export const noticeProblem = (error) => error?.name !== 'AbortError' &&
  notice(error?.hint ? `${error.message}. ${error.hint}` : String(error?.message ?? error), {kind: 'problem'});
