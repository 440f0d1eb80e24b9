// The activity of clients as a network panel: calls with bars on a time axis, and the changes of state between them.
import {codeLine, dialog, duration, fill, foreign, h, icon, list, setState, setText, stateBadge, time} from './dom.js';
import {store, subscribe, titleOf} from './store.js';
import {emptyView, isTyping, onSight, select, setOptions} from './parts.js';
import {detailView, isOpen, pictureOf} from './activity-detail.js';
import {mountOverview} from './activity-overview.js';

export const title = 'Activity';

const OUTCOMES = ['waiting', 'running', 'ok', 'error', 'refused', 'cancelled', 'unknown'];
const SPANS = [['', 'All times'], ['60', '1 minute'], ['600', '10 minutes'], ['3600', '1 hour'], ['86400', '1 day']];
// Times in CSS are seconds from here, because a float has too few digits for milliseconds since 1970.
const base = Date.now();
const seconds = at => (Date.parse(at) - base) / 1000;

export function render(root, params, ctx) {
  const get = name => params.query.get(name) ?? '';
  fill(root, h('header.v-head', h('div.v-head-main', h('h1', 'Activity'), h('p.v-facts', 'What agents and people called, the newest last. The broker keeps it in memory only.')),
    h('div.v-actions', h('button', {onclick: showReport}, 'Report…'))));
  const body = h('div');
  root.append(body);
  return mountActivity(body, {endpoint: get('endpoint'), client: get('client') || get('grant'), tool: get('tool'), outcome: get('outcome'), text: get('text'), id: Number(get('id')) || null, isPage: true}, ctx);
}

function showReport() {
  dialog({title: 'A report to attach', body: [h('p', 'This command writes the activity with its pictures into one file, without a server:'), codeLine('patchbay activity --html report.html')]});
}

/** Shows the activity, of one app if `endpoint` is given and it is no page of its own. `host` is another host, which has it. Returns the cleanup. */
export function mountActivity(root, {isPage = false, id = null, host = null, ...wanted}, ctx) {
  const filter = {endpoint: '', client: '', tool: '', outcome: '', text: '', ...wanted};
  const state = {selected: id, isFollowing: id === null, from: null, to: null, span: ''};
  let shown = [];
  let detail = null;

  const search = h('input', {type: 'search', dataset: {search: ''}, value: filter.text, placeholder: 'Filter: tool, app, client, text', 'aria-label': 'Filter by text', autocomplete: 'off', oninput: () => { filter.text = search.value; apply(); }});
  const selects = [['endpoint', 'All apps'], ['client', 'All clients'], ['tool', 'All tools'], ['outcome', 'All outcomes']].filter(([name]) => isPage || name !== 'endpoint').map(([name, all]) =>
    Object.assign(select([['', all]], {'aria-label': all, onchange: event => { filter[name] = event.target.value; apply(); }}), {filterName: name, all}));
  const span = select(SPANS, {'aria-label': 'Time span', onchange: () => { Object.assign(state, {span: span.value, from: null, to: null}); apply(); }});
  const follow = h('button.v-quiet', {'aria-pressed': 'true', title: 'Keep the newest in view (f)', onclick: () => setFollowing(!state.isFollowing)}, 'Follow');
  const reset = h('button.v-quiet', {onclick: () => { Object.assign(filter, {client: '', tool: '', outcome: '', text: ''}, isPage && {endpoint: ''}); Object.assign(state, {span: '', from: null, to: null}); search.value = span.value = ''; apply(); }}, 'Clear');
  const count = h('span.v-hint', {role: 'status'});
  const overview = mountOverview({onSelect(from, to) { Object.assign(state, {from, to, isFollowing: from === null && state.isFollowing}); apply(); }});
  const rows = h('div.v-rows', {role: 'listbox', tabindex: '0', 'aria-label': 'Calls and changes', onscroll, onclick: event => {
    const row = event.target.closest('.v-call');
    if (row) choose(Number(row.dataset.id));
  }});
  const head = h('div.v-call.v-call-head', {'aria-hidden': 'true'}, ['Time', 'Client', 'App', 'Tool', 'Outcome', 'Took'].map(text => h('span', text)), h('span.v-axis'));
  const table = h('div.v-calls', head, rows);
  const pane = h('div.v-detail', {hidden: true, 'aria-live': 'off'});
  const empty = h('div', {hidden: true});
  const frame = h('div.v-activity', {class: !isPage && 'is-embedded'},
    h('div.v-toolbar', {role: 'search'}, search, selects, span, reset, follow, count),
    overview.element, h('div.v-activity-body', table, pane), empty);
  fill(root, frame);

  // MARK: Filter

  function matches(entry, words) {
    if (filter.endpoint && entry.endpoint !== filter.endpoint) return false;
    const isCall = entry.kind === 'call';
    if (!isCall && (filter.client || filter.tool || filter.outcome)) return false;
    if (filter.client && clientKey(entry.client) !== filter.client && entry.client?.name !== filter.client) return false;
    if (filter.tool && entry.tool !== filter.tool) return false;
    if (filter.outcome && entry.outcome !== filter.outcome) return false;
    if (!words.length) return true;
    entry.searchText ??= [entry.tool, entry.app, entry.endpoint, entry.client?.name, entry.outcome, entry.text, entry.result?.text, JSON.stringify(entry.arguments ?? '')].join(' ').toLowerCase();
    return words.every(word => entry.searchText.includes(word));
  }

  function apply() {
    const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = store.activity.filter(entry => matches(entry, words));
    const [from, to] = range(found);
    const isLimited = state.span || state.from !== null;
    shown = isLimited ? found.filter(entry => { const at = Date.parse(entry.at); return at + (entry.waitMilliseconds ?? 0) + (entry.durationMilliseconds ?? 0) >= from && at <= to; }) : found;
    rows.style.setProperty('--from', String((from - base) / 1000));
    rows.style.setProperty('--span', String(Math.max(1, to - from) / 1000));
    list(rows, shown, entry => entry.id, row, updateRow);
    overview.draw(found, from, to, isLimited);
    fill(head.lastChild, axis(from, to, head.lastChild.clientWidth));
    showOptions();
    setText(count, shown.length === store.activity.length ? `${shown.length} entries` : `${shown.length} of ${store.activity.length} entries`);
    const isEmpty = !shown.length;
    table.parentElement.hidden = isEmpty;
    empty.hidden = !isEmpty;
    if (isEmpty) fill(empty, store.activity.length && (isPage || filter.text || filter.tool || filter.client || filter.outcome || isLimited) ? emptyView('Nothing matches', 'No entry has these properties. ', h('button', {onclick: () => reset.click()}, 'Clear the filter'))
      : host ? emptyView('The activity is at another host', 'The broker of ', foreign(host), ' keeps the calls of its apps, also those that came from here.')
        : emptyView('No activity yet', 'The calls of agents and people appear here, with what they changed and with pictures.'));
    mark();
    // The detail of a running call changes when the call ends.
    const entry = state.selected !== null && store.activity.find(one => one.id === state.selected);
    if (entry && (!detail || detail.entry !== entry)) openDetail(entry);
    if (state.isFollowing) rows.scrollTop = rows.scrollHeight;
    writeAddress();
  }

  function range(found) {
    const now = Date.now();
    if (state.from !== null) return [state.from, state.to];
    if (state.span) return [now - Number(state.span) * 1000, now];
    const first = found.length ? Date.parse(found[0].at) : now - 60000;
    const last = Math.max(...found.slice(-20).map(endOf), first + 1000);
    return [first, last + (last - first) * 0.02];
  }
  const endOf = entry => isOpen(entry) ? Date.now() : Date.parse(entry.at) + (entry.waitMilliseconds ?? 0) + (entry.durationMilliseconds ?? 0);

  function showOptions() {
    for (const control of selects) {
      const name = control.filterName;
      const options = new Map();
      for (const entry of store.activity) {
        if (name === 'endpoint' && entry.endpoint) options.set(entry.endpoint, nameOf(entry));
        if (entry.kind !== 'call') continue;
        if (name === 'client') options.set(clientKey(entry.client), entry.client?.name ?? '');
        if (name === 'tool') options.set(entry.tool, entry.tool);
        if (name === 'outcome') options.set(entry.outcome, entry.outcome);
      }
      if (filter[name] && !options.has(filter[name])) options.set(filter[name], filter[name]);
      setOptions(control, control.all, [...options].sort((one, other) => name === 'outcome' ? OUTCOMES.indexOf(one[0]) - OUTCOMES.indexOf(other[0]) : String(one[1]).localeCompare(other[1])), filter[name]);
      control.classList.toggle('is-set', Boolean(filter[name]));
    }
    reset.hidden = !filter.text && !selects.some(control => control.value) && !state.span && state.from === null;
  }

  function writeAddress() {
    if (!isPage) return;
    ctx.setQuery({...filter, id: state.selected});
  }

  // MARK: Rows

  function row(entry) {
    const isCall = entry.kind === 'call';
    const element = h('div.v-call', {class: !isCall && 'is-change', role: 'option', id: `a${entry.id}`, dataset: {id: String(entry.id)}, style: {'--at': String(seconds(entry.at))}},
      time(entry.at),
      isCall ? foreign(clientName(entry.client), 80) : h('span'),
      foreign(nameOf(entry), 80),
      isCall ? h('span.v-call-tool', foreign(entry.tool, 120), h('span.v-call-thumb')) : h('span.v-call-text', stateBadge(entry.state ?? 'unknown', {label: false}), foreign(entry.text, 200)),
      isCall && stateBadge(entry.outcome), isCall && h('span.v-number'),
      h('span.v-track', isCall ? h('i.v-bar') : h('i.v-tick')));
    updateRow(element, entry);
    return element;
  }
  function updateRow(element, entry) {
    if (entry.kind !== 'call') return;
    const [, , , , badge, took, track] = element.children;
    setState(badge, entry.outcome);
    setText(took, isOpen(entry) ? '…' : duration(entry.durationMilliseconds));
    const bar = track.firstChild;
    bar.className = `v-bar is-${OUTCOMES.includes(entry.outcome) ? entry.outcome : 'unknown'}`;
    const [wait, run] = [entry.waitMilliseconds ?? 0, entry.durationMilliseconds ?? 0];
    bar.style.setProperty('--long', String((wait + run) / 1000));
    bar.style.setProperty('--wait', `${wait + run > 0 ? 100 * wait / (wait + run) : 0}%`);
    track.title = `${wait ? `waited ${duration(wait)}, ` : ''}took ${duration(run)}`;
    const thumb = element.querySelector('.v-call-thumb');
    if (entry.picture && !thumb.firstChild) {
      thumb.append(icon('screen'), h('span.sr', 'with a picture'));
      watcher.observe(thumb);
    }
  }
  const watcher = onSight(rows, thumb => pictureOf(Number(thumb.closest('.v-call').dataset.id), 96).then(url => fill(thumb, h('img', {src: url, alt: 'with a picture'})), () => {}));

  function mark() {
    for (const element of rows.querySelectorAll('[aria-selected=true]')) if (Number(element.dataset.id) !== state.selected) element.removeAttribute('aria-selected');
    const element = rows.querySelector(`#a${state.selected}`);
    element?.setAttribute('aria-selected', 'true');
    if (element) rows.setAttribute('aria-activedescendant', element.id); else rows.removeAttribute('aria-activedescendant');
    return element;
  }

  // MARK: Selection

  function choose(selected) {
    state.selected = selected;
    setFollowing(false);
    mark()?.scrollIntoView({block: 'nearest'});
    const entry = store.activity.find(one => one.id === selected);
    if (entry) openDetail(entry);
    writeAddress();
  }
  function openDetail(entry) {
    detail?.release();
    detail = detailView(entry, {onStep: step, onClose: closeDetail, onChoose: choose});
    fill(pane, detail.element);
    pane.hidden = false;
    frame.classList.add('has-detail');
  }
  function closeDetail() {
    detail?.release();
    detail = null;
    pane.hidden = true;
    state.selected = null;
    frame.classList.remove('has-detail');
    mark();
    rows.focus({preventScroll: true});
    writeAddress();
  }
  function step(move) {
    if (!shown.length) return;
    const at = shown.findIndex(entry => entry.id === state.selected);
    const next = shown[at < 0 ? shown.length - 1 : Math.min(shown.length - 1, Math.max(0, at + move))];
    if (next) choose(next.id);
  }
  function setFollowing(isFollowing) {
    state.isFollowing = isFollowing;
    follow.setAttribute('aria-pressed', String(isFollowing));
    if (isFollowing) rows.scrollTop = rows.scrollHeight;
  }
  function onscroll() {
    const isAtEnd = rows.scrollHeight - rows.scrollTop - rows.clientHeight < 40;
    if (!isAtEnd && state.isFollowing && rows.matches(':hover,:focus-within')) setFollowing(false);
  }
  function onKey(event) {
    if (isTyping(event)) return;
    const move = {j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity}[event.key];
    const isInside = frame.contains(event.target) || event.target === document.body;
    if (move && isInside && !event.target.closest?.('.v-block,[role=tablist]')) step(move);
    else if (event.key === 'Escape' && detail) closeDetail();
    else if (event.key === 'f' && isInside) setFollowing(!state.isFollowing);
    else return;
    event.preventDefault();
  }

  document.addEventListener('keydown', onKey);
  const unsubscribe = subscribe('activity', apply);
  // Running bars grow, and a span that ends now moves.
  const timer = setInterval(() => {
    if (document.hidden) return;
    const now = Date.now();
    // Only on the running bars: an inherited property of the list would restyle all its rows.
    for (const bar of rows.querySelectorAll('.v-bar.is-running, .v-bar.is-waiting')) bar.style.setProperty('--now', String((now - base) / 1000));
    if (state.span && state.from === null) rows.style.setProperty('--from', String((now - Number(state.span) * 1000 - base) / 1000));
  }, 250);
  setFollowing(state.isFollowing);
  apply();
  if (id !== null) mark()?.scrollIntoView({block: 'center'});
  return () => { document.removeEventListener('keydown', onKey); unsubscribe(); clearInterval(timer); watcher.disconnect(); overview.cleanup(); detail?.release(); };
}

const nameOf = entry => { const endpoint = store.endpoints.get(entry.endpoint); return endpoint ? titleOf(endpoint) : entry.app || entry.endpoint || ''; };
const clientKey = client => client?.agent ?? client?.grant ?? client?.name ?? '';
const clientName = client => client?.name ?? 'unknown';

/** Builds labels at round times of the axis. */
function axis(from, to, width) {
  const step = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400].find(one => (to - from) / 1000 / one <= width / 92) ?? 86400;
  const marks = [];
  for (let at = Math.ceil(from / step / 1000) * step * 1000; at < to && marks.length < 12; at += step * 1000) {
    // A label at the end would be cut.
    if ((to - at) / (to - from) * width < 84) break;
    const text = new Date(at).toLocaleTimeString(undefined, {hour: '2-digit', minute: '2-digit', ...step < 60 && {second: '2-digit'}, ...step < 1 && {fractionalSecondDigits: 1}});
    marks.push(h('span.v-axis-mark', {style: {'--x': `${100 * (at - from) / (to - from)}%`}}, text));
  }
  return marks;
}
