// The live screen of an app. Looking takes no lease; the first tap, swipe or text takes one and shows it.
import {duration, fill, foreign, h, notice, noticeProblem, printable, setText, time} from './dom.js';
import {api, may, path} from './session.js';
import {leaseOf, store, subscribe} from './store.js';
import {endLeaseButton, isTyping, problemView} from './parts.js';
import {fraction, gesture} from './gesture.js';

const FASTEST = 500;
const SLOWEST = 4000;
const LEASE_SECONDS = 120;
// The keys beside letters, the characters for which an app's tool presses them, and the ability that it needs.
const KEYS = [['Backspace', '\b', '⌫', 'keys'], ['Tab', '\t', '⇥', 'keys'], ['Enter', '\n', '⏎', 'type'], ['Delete', '\x7f', '⌦', 'delete'],
  ['ArrowLeft', '\uf702', '←', 'arrows'], ['ArrowUp', '\uf700', '↑', 'arrows'], ['ArrowDown', '\uf701', '↓', 'arrows'], ['ArrowRight', '\uf703', '→', 'arrows']];

/** Shows the screen of an app, refreshed while it is visible. Returns the cleanup. */
export function mountScreen(root, id) {
  const ending = new AbortController();
  const {signal} = ending;
  let details = null;
  let etag = null;
  let url = null;
  let delay = FASTEST;
  let timer = 0;
  let isLoading = false;
  let isVisible = true;
  let isPaused = false;
  let ownLease = null;
  let buffer = '';
  let bufferTimer = 0;

  const image = h('img.v-screen-picture', {alt: 'Screen of the app', draggable: 'false'});
  const marks = h('div.v-marks', {'aria-hidden': 'true'});
  const surface = h('div.v-surface', {tabindex: '0', dataset: {keys: ''}}, image, marks);
  const status = h('span.v-hint.cut', {role: 'status'});
  const pause = h('button.v-quiet', {'aria-pressed': 'false', onclick: () => {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', String(isPaused));
    setText(pause, isPaused ? 'Resume' : 'Pause');
    if (isPaused) setText(status, 'Paused'); else soon();
  }}, 'Pause');
  const lease = h('div.v-screen-lease');
  const typing = h('form.v-row.v-typing', {onsubmit: event => {
    event.preventDefault();
    const text = typing.firstChild.value;
    if (text) send({type: {text}}).then(isSent => { if (isSent) typing.firstChild.value = ''; });
  }}, h('input', {type: 'text', 'aria-label': 'Text to type into the app', placeholder: 'Type into the app', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false'}), h('button', {type: 'submit'}, 'Type'),
  KEYS.map(([key, , sign, need]) => h('button.icon-button', {title: key, 'aria-label': key, dataset: {need}, onclick: () => press(key)}, sign)));
  const limits = h('ul.v-limits');
  const bar = h('div.v-row.v-screen-bar', status, pause);
  const canSend = kind => details?.input?.includes(kind) && may('endpoint.call');

  // MARK: Pictures

  function soon() {
    delay = FASTEST;
    clearTimeout(timer);
    if (!isLoading) timer = setTimeout(load, 0);
  }
  const isWatched = () => !document.hidden && isVisible && !isPaused && details && !signal.aborted;

  async function load() {
    if (!isWatched() || isLoading) return;
    isLoading = true;
    const start = performance.now();
    // Steps of 160 pixels: a resize must not make the broker scale a picture for each width.
    const pixels = surface.clientWidth * devicePixelRatio || 320;
    const width = Math.min(1600, Math.max(160, Math.ceil(pixels / 160) * 160));
    try {
      const response = await api('GET', `${path('endpoints', id, 'screen', 'picture')}?width=${width}`, undefined, {raw: true, signal, headers: etag ? {'If-None-Match': etag} : {}});
      const taken = performance.now() - start;
      if (response.status !== 304) {
        etag = response.headers.get('ETag');
        await show(await response.blob());
        delay = FASTEST;
      } else {
        delay = Math.min(delay * 1.5, 2000);
      }
      setText(status, `Live, ${duration(taken)}`);
      status.title = 'The time of the last picture. A screen that does not change is asked for less often.';
      // A slow app is busy at most half of the time.
      delay = Math.max(delay, 2 * taken);
    } catch (error) {
      if (signal.aborted) return;
      delay = Math.min(Math.max(delay * 2, 1000), 8000);
      setText(status, printable(`No picture: ${error.message}`));
      surface.classList.add('is-stale');
      if (error.status === 404) details = null;
    }
    isLoading = false;
    if (isWatched()) timer = setTimeout(load, Math.max(0, Math.min(delay, SLOWEST * 2) - (performance.now() - start)));
  }

  async function show(blob) {
    const next = URL.createObjectURL(blob);
    const probe = new Image();
    probe.src = next;
    try { await probe.decode(); } catch { URL.revokeObjectURL(next); throw new Error('the picture is damaged'); }
    if (signal.aborted) return URL.revokeObjectURL(next);
    const old = url;
    url = next;
    image.src = next;
    surface.style.setProperty('--ratio', `${probe.naturalWidth} / ${probe.naturalHeight}`);
    surface.style.setProperty('--aspect', String(probe.naturalWidth / probe.naturalHeight));
    surface.classList.remove('is-empty', 'is-stale');
    if (old) setTimeout(() => URL.revokeObjectURL(old), 1000);
  }

  // MARK: Input

  async function takeLease() {
    const endpoint = store.endpoints.get(id);
    const held = ownLease ?? (endpoint && leaseOf(endpoint));
    if (held?.own && Date.parse(held.expiresAt) > Date.now()) return;
    const taken = await api('POST', '/v1/leases', {endpoint: id, seconds: LEASE_SECONDS, note: 'live screen'}, {signal});
    ownLease = taken;
    showLease();
  }

  function flushText() {
    clearTimeout(bufferTimer);
    const text = buffer;
    buffer = '';
    if (text) send({type: {text}});
  }
  let last = Promise.resolve(true);
  function send(input) {
    // What was typed before a tap reaches the app before it.
    if (!input.type) flushText();
    // One at a time: the app must see taps in their order.
    last = last.then(async () => {
      try {
        await takeLease();
        await api('POST', path('endpoints', id, 'screen', 'input'), input, {signal});
        soon();
        return true;
      } catch (error) {
        if (signal.aborted) return false;
        if (error.status === 423 || error.status === 404) ownLease = null;
        noticeProblem(error);
        showLease();
        return false;
      }
    });
    return last;
  }

  function mark(point, kind) {
    const dot = h('i', {class: `v-mark v-mark-${kind}`, style: {'--x': String(point.x), '--y': String(point.y)}});
    marks.append(dot);
    setTimeout(() => dot.remove(), 700);
  }

  gesture(surface, image, {
    isEnabled: () => Boolean(url) && (canSend('tap') || canSend('swipe')),
    tap(point) {
      if (!canSend('tap')) return notice(why('tap'));
      mark(point, 'tap');
      send({tap: point});
    },
    swipe(from, to, milliseconds) {
      if (!canSend('swipe')) return notice(why('swipe'));
      mark(from, 'tap');
      mark(to, 'end');
      send({swipe: {from, to, milliseconds}});
    },
  });
  const why = kind => printable(details?.limits?.find(text => text.toLowerCase().includes(kind)) ?? `This app has no tool for ${kind}.`);

  /** Types a letter, or presses a key of `KEYS`. Every app gets Enter as the end of a line. */
  function press(key) {
    const [, text, , need] = KEYS.find(([name]) => name === key) ?? [key, key, key, 'type'];
    if (!canSend('type')) return notice(why('typing'));
    if (!canSend(need)) return notice(why('keys'));
    buffer += text;
    clearTimeout(bufferTimer);
    bufferTimer = setTimeout(flushText, 300);
  }

  // By keyboard: arrows move a cross, Enter taps there, and letters are typed. Tab leaves the screen, so it has a button only.
  const cross = h('i.v-cross', {hidden: true});
  surface.append(cross);
  const place = {x: 0.5, y: 0.5};
  surface.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === 'Tab') return;
    const step = event.shiftKey ? 0.002 : 0.02;
    const [x, y] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key] ?? [0, 0];
    if (x || y) {
      if (!canSend('tap')) return;
      if (!cross.hidden) Object.assign(place, {x: fraction(place.x + x * step), y: fraction(place.y + y * step)});
      cross.hidden = false;
      cross.style.setProperty('--x', place.x);
      cross.style.setProperty('--y', place.y);
    } else if (event.key === 'Escape') {
      if (cross.hidden) return;
      cross.hidden = true;
    } else if (event.key === 'Enter' && !cross.hidden) {
      mark(place, 'tap');
      send({tap: {...place}});
    } else if (details && (event.key.length === 1 || ['Enter', 'Backspace', 'Delete'].includes(event.key))) press(event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  surface.addEventListener('blur', () => { cross.hidden = true; });

  // MARK: The lease

  function showLease() {
    const endpoint = store.endpoints.get(id);
    // The answer of the request comes before the event, and may be newer.
    const known = (endpoint && leaseOf(endpoint)) ?? ownLease;
    const held = known && (!known.expiresAt || Date.parse(known.expiresAt) > Date.now()) ? known : null;
    lease.className = `v-screen-lease${held ? held.own ? ' is-own' : ' is-other' : ''}`;
    surface.classList.toggle('is-locked', Boolean(held && !held.own));
    if (!held) {
      const hint = !details ? '' : !details.input?.length ? '' : !may('endpoint.call') ? 'Your grant allows you to look only.' : 'A tap takes a lease of 2 minutes.';
      return fill(lease, hint && h('span.v-hint', hint));
    }
    const end = (held.own || may('admin')) && endLeaseButton(held, 'Release', () => {
      if (ownLease?.id === held.id) ownLease = null;
      showLease();
    });
    const left = held.expiresAt && [' for ', time(held.expiresAt, {left: true})];
    fill(lease, held.own ? h('span', 'You have the lease', left) : h('span', foreign(held.holder, 300, 'v-strong'), ' has the lease', left, '. You can look, and not tap.'), end);
  }

  // MARK: Start and end

  async function start() {
    try {
      details = await api('GET', path('endpoints', id, 'screen'), undefined, {signal});
    } catch (error) {
      if (signal.aborted) return;
      const isMissing = error.status === 404 || error.status === 501;
      return fill(root, isMissing ? h('p.v-hint.v-no-screen', foreign(error.detail || 'This app has no tool that shows its screen.'), error.hint && ' ', error.hint && foreign(error.hint)) : problemView(error, start));
    }
    fill(limits, (details.limits ?? []).map(text => h('li', foreign(text))));
    if (!details.tool) return fill(root, h('p.v-hint.v-no-screen', 'This app has no tool that shows its screen.'), limits);
    typing.hidden = !canSend('type');
    for (const button of typing.querySelectorAll('[data-need]')) button.hidden = ['delete', 'arrows'].includes(button.dataset.need) && !canSend(button.dataset.need);
    surface.classList.add('is-empty');
    surface.classList.toggle('is-passive', !canSend('tap') && !canSend('swipe'));
    surface.setAttribute('role', 'application');
    surface.setAttribute('aria-label', `Live screen. ${canSend('tap') ? 'Arrow keys move a cross, Enter taps there. ' : ''}${canSend('type') ? 'Letters are typed into the app.' : ''}`);
    fill(root, bar, surface, lease, typing, limits);
    showLease();
    soon();
  }

  const observer = new IntersectionObserver(([entry]) => {
    isVisible = entry.isIntersecting;
    if (isVisible) soon(); else setText(status, 'Paused while out of sight');
  });
  observer.observe(root);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) soon(); }, {signal});
  document.addEventListener('keydown', event => { if (event.key === 's' && !isTyping(event) && details) surface.focus(); }, {signal});
  const unsubscribe = subscribe(['leases', 'endpoints'], showLease);
  surface.classList.add('is-empty');
  fill(root, bar, surface);
  start();

  return () => {
    ending.abort();
    clearTimeout(timer);
    clearTimeout(bufferTimer);
    observer.disconnect();
    unsubscribe();
    if (url) URL.revokeObjectURL(url);
    // The page gives back the lease that it took. A lease that the person took elsewhere stays.
    if (ownLease) api('DELETE', path('leases', ownLease.id)).catch(() => {});
  };
}
