// The states that an app sent to the state debugger: a strip of pictures, a comparison of two states, and replay.
import {bytes, confirmDialog, fill, foreign, h, list, notice, noticeProblem, setText, time} from './dom.js';
import {api, path} from './session.js';
import {store, subscribe} from './store.js';
import {codeBlock, decode} from './result.js';
import {emptyView, isTyping, onSight, problemView} from './parts.js';

const SOONEST = 4000;
const LATEST = 30000;

/** Indicates whether an app is connected to the state debugger of the broker. */
export const hasStates = endpoint => endpoint.kind === 'debug' && (endpoint.sources ?? []).includes('debuglink');

/** Shows the states of an app. Returns the cleanup. */
export function mountStates(root, id) {
  const ending = new AbortController();
  const {signal} = ending;
  const pictures = new Map();
  let states = [];
  let details = {};
  let newer = null;
  let older = null;
  let isPrevious = false;
  let isFollowing = true;
  let wait = SOONEST;
  let timer = 0;
  let shown = '';

  const previous = h('input', {type: 'checkbox', onchange: () => { isPrevious = previous.checked; [newer, older, isFollowing] = [null, null, true]; forget(); refresh(true); }});
  const count = h('span.v-hint', {role: 'status'});
  const strip = h('ol.v-strip', {'aria-label': 'States, the newest last', onkeydown: step});
  const compare = h('div.v-compare');
  const frame = h('div.v-states',
    h('div.v-row', count, h('label.v-inline', previous, ' The launch before'), h('button.v-quiet', {onclick: () => refresh(true)}, 'Refresh'),
      h('span.v-hint', 'Arrow keys step. Shift-click selects the state to compare with.')),
    strip, compare);

  async function call(tool, args = {}, extra = {}) {
    const answer = await api('POST', path('endpoints', id, 'call'),
      {tool, arguments: isPrevious && tool !== 'send_state' ? {...args, previous: true} : args, ...extra}, {signal});
    const {result} = answer;
    if (result.isError) throw new Error(result.content?.find(part => part.type === 'text')?.text ?? 'The broker refused the call.');
    return result;
  }
  const json = async (...words) => JSON.parse((await call(...words)).content.find(part => part.type === 'text')?.text ?? 'null');

  async function refresh(isWanted) {
    clearTimeout(timer);
    if (signal.aborted) return;
    if (!document.hidden && (isWanted || !isPrevious)) {
      try {
        details = await json('states');
        if (signal.aborted) return;
        const next = details.states ?? [];
        const isSame = next.length === states.length && next.at(-1)?.time === states.at(-1)?.time;
        wait = isSame && !isWanted ? Math.min(wait * 1.5, LATEST) : SOONEST;
        // A new launch counts from 1 again.
        if (next.at(-1) && states.at(-1) && next.at(-1).number < states.at(-1).number) { forget(); [newer, older] = [null, null]; }
        states = next;
        show();
      } catch (error) {
        if (signal.aborted) return;
        if (isWanted) {
          if (isPrevious) { noticeProblem(error); previous.checked = isPrevious = false; return refresh(true); }
          fill(root, problemView(error, () => refresh(true)));
        }
        wait = LATEST;
      }
    }
    timer = setTimeout(refresh, wait);
  }

  function show() {
    if (!states.length) return fill(root, emptyView('No states yet', 'Use the app until it sends one. It sends a state after each action.'));
    if (!frame.isConnected) fill(root, frame);
    setText(count, `${states.length} states${details.droppedStates ? `, ${details.droppedStates} older ones dropped` : ''}${details.connected === false ? '. The app is not connected.' : ''}`);
    if (isFollowing || !states.some(state => state.number === newer)) {
      newer = states.at(-1).number;
      older = states.at(-2)?.number ?? null;
    }
    if (!states.some(state => state.number === older)) older = null;
    list(strip, states, state => `${state.number} ${state.time}`, card, (element, state) => setCard(element, state));
    mark();
    showComparison();
  }

  function card(state) {
    const picture = h('div.v-thumb');
    const button = h('button.v-state', {onclick: event => choose(state.number, event.shiftKey)},
      picture, h('span.v-state-action.cut', foreign(state.action ?? 'no action')),
      h('span.v-sub', `${state.number} · `, time(state.time), ` · ${bytes(state.bytes)}`), h('span.v-role'));
    const element = h('li', {dataset: {number: String(state.number)}}, button);
    setCard(element, state);
    return element;
  }
  function setCard(element, state) {
    const picture = element.querySelector('.v-thumb');
    if (state.picture === 'held') watcher.observe(picture);
    else if (!picture.querySelector('img')) setText(picture, {none: 'no picture', dropped: 'picture dropped', invalid: 'picture invalid'}[state.picture] ?? '');
  }
  function mark() {
    for (const element of strip.children) {
      const number = Number(element.dataset.number);
      const button = element.firstChild;
      const role = number === newer ? 'newer' : number === older ? 'older' : '';
      button.dataset.role = role;
      button.setAttribute('aria-pressed', String(Boolean(role)));
      button.tabIndex = number === newer ? 0 : -1;
      setText(button.lastChild, role && (role === 'newer' ? 'after' : 'before'));
    }
    if (isFollowing) strip.scrollLeft = strip.scrollWidth;
  }

  const watcher = onSight(strip, thumb => loadPicture(Number(thumb.closest('li').dataset.number), 240).then(url => url && fill(thumb, h('img', {src: url, alt: ''})), () => setText(thumb, 'no picture')));

  function loadPicture(number, maxPixels) {
    const key = `${number} ${maxPixels}`;
    if (!pictures.has(key)) {
      pictures.set(key, call('shot', {number}, {maxPixels}).then(({content}) => {
        const image = content.find(part => part.type === 'image');
        const data = image && decode(image.data);
        return data ? URL.createObjectURL(new Blob([data], {type: image.mimeType})) : null;
      }));
    }
    return pictures.get(key);
  }
  function forget() {
    for (const picture of pictures.values()) picture.then(url => url && URL.revokeObjectURL(url), () => {});
    pictures.clear();
    shown = '';
    fill(strip);
    list(strip, [], () => 0);
  }

  function choose(number, isOther) {
    if (isOther && number !== newer) older = number;
    else {
      newer = number;
      const at = states.findIndex(state => state.number === number);
      older = states[at - 1]?.number ?? null;
      isFollowing = at === states.length - 1;
    }
    if (older !== null && older > newer) [older, newer] = [newer, older];
    mark();
    showComparison();
  }
  function step(event) {
    const move = {ArrowRight: 1, ArrowLeft: -1, j: 1, k: -1}[event.key];
    const next = move && !isTyping(event) && states[states.findIndex(state => state.number === newer) + move];
    if (!next) return;
    event.preventDefault();
    choose(next.number);
    strip.querySelector('[data-role=newer]')?.focus();
    strip.querySelector('[data-role=newer]')?.scrollIntoView({inline: 'nearest', block: 'nearest'});
  }

  async function showComparison() {
    const key = `${older} ${newer} ${isPrevious} ${details.connected}`;
    if (key === shown) return;
    shown = key;
    const state = states.find(one => one.number === newer);
    const before = states.find(one => one.number === older);
    const changes = h('div', h('p.v-hint', 'Comparing…'));
    const whole = h('div');
    const pointer = h('input.v-code', {type: 'text', placeholder: '/cart/0', 'aria-label': 'JSON pointer to one value', autocomplete: 'off', spellcheck: 'false', });
    const replay = h('button', {disabled: isPrevious || !details.connected, title: details.connected ? null : 'The app is not connected.', onclick: () => send(state.number)}, `Send state ${state.number} to the app`);
    fill(compare,
      h('div.v-pair', picture(before, 'Before'), picture(state, 'After')),
      h('div.v-diff',
        h('header.v-section-head', h('h2', before ? `State ${before.number} → ${state.number}` : `State ${state.number}`), h('div.v-actions', replay)),
        changes,
        h('details.v-details', {ontoggle: event => { if (event.target.open && !whole.firstChild) showJSON(); }}, h('summary', `The whole state ${state.number}`),
          h('form.v-row', {onsubmit: event => { event.preventDefault(); showJSON(); }}, pointer, h('button', {type: 'submit'}, 'Show')), whole)));

    async function showJSON() {
      const path = pointer.value.trim();
      try {
        const {content} = await call('state', {number: state.number, limit: 1_000_000, ...path && {pointer: path.startsWith('/') ? path : `/${path}`}});
        const [text, rest] = content.filter(part => part.type === 'text').map(part => part.text);
        fill(whole, codeBlock(text ?? '', {label: `State ${state.number}`}), rest && h('p.v-hint', rest));
      } catch (error) { if (!signal.aborted) fill(whole, problemView(error)); }
    }
    if (!before) return fill(changes, h('p.v-hint', 'No earlier state is held to compare with.'));
    try {
      const found = await json('diff', {from: before.number, to: state.number});
      if (shown === key) fill(changes, diffView(found));
    } catch (error) {
      if (!signal.aborted && shown === key) fill(changes, problemView(error));
    }
  }

  function picture(state, label) {
    const frame = h('figure.v-picture', h('div.v-picture-frame', state?.picture === 'held' ? '' : h('span.v-hint', state ? 'No picture' : 'No state')),
      h('figcaption', label, state && [' · ', foreign(state.action ?? ''), ' · ', time(state.time)]));
    if (state?.picture === 'held') {
      loadPicture(state.number, 900).then(url => url && fill(frame.firstChild, h('img', {src: url, alt: `Screen in state ${state.number}`})), error => { if (!signal.aborted) setText(frame.firstChild, error.message); });
    }
    return frame;
  }

  async function send(number) {
    if (!await confirmDialog({title: `Send state ${number}?`, text: 'The app shows this state in place of its own. What it shows now is lost, unless it is one of the states here.', action: 'Send the state'})) return;
    try {
      await call('send_state', {number});
      notice(`State ${number} was sent to the app.`);
      setTimeout(() => refresh(true), 700);
    } catch (error) { noticeProblem(error); }
  }

  fill(root, h('p.v-hint', {role: 'status'}, 'Reading the states…'));
  refresh(true);
  let connection = store.endpoints.get(id)?.state;
  const unsubscribe = subscribe('endpoints', () => {
    const now = store.endpoints.get(id)?.state;
    if (now !== connection) { connection = now; refresh(true); }
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(true); }, {signal});
  return () => { ending.abort(); clearTimeout(timer); unsubscribe(); watcher.disconnect(); forget(); };
}

/** The differences of two states: added, removed and changed values, by colour and sign. */
function diffView({changes = [], omittedChanges: omitted = 0}) {
  if (!changes.length) return h('p.v-hint', 'The states are equal.');
  return h('table.v-diff-table',
    h('thead', h('tr', ['', 'Value', 'Before', 'After'].map(text => h('th', {scope: 'col'}, text || h('span.sr', 'Change'))))),
    h('tbody', changes.map(({pointer, before, after}) => {
      const [kind, sign] = before === undefined ? ['added', '+'] : after === undefined ? ['removed', '−'] : ['changed', '~'];
      return h('tr', {class: `is-${kind}`}, h('td', h('span', {'aria-hidden': 'true'}, sign), h('span.sr', kind)),
        h('th', {scope: 'row'}, foreign(pointer || '(the whole state)')), h('td', before !== undefined && h('del', foreign(before))), h('td', after !== undefined && h('ins', foreign(after))));
    })),
    omitted > 0 && h('tfoot', h('tr', h('td', {colspan: '4'}, `${omitted} more changes`))));
}
