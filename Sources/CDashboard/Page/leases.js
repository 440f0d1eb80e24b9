// Leases: who has which phone or app, until when, and who waits. Take one, end your own, break another one.
import {dialog, fill, foreign, h, icon, list, noticeProblem, setText, time} from './dom.js';
import {api, may} from './session.js';
import {deviceName, refresh, store, subscribe, titleOf} from './store.js';
import {act, dangerButton, emptyView, endpointLink, field, select, spanText} from './parts.js';

export const title = 'Leases';

const TIMES = [120, 600, 1800, 3600, 7200, 28800].map(value => [String(value), spanText(value)]);

export function render(root, params) {
  const cards = h('div', {class: 'v-list'});
  const place = h('div');
  fill(root, h('div', {class: 'v-page'}, h('header', {class: 'v-head'}, h('div', {class: 'v-head-main'}, h('h1', null, 'Leases'), h('p', {class: 'v-facts'}, 'Exclusive use of an app, and of its phone, for a while. Others may look and may not change anything.')),
    h('div', {class: 'v-actions'}, may('endpoint.call') && h('button', {type: 'button', class: 'primary', onclick: () => leaseDialog(params.query.get('endpoint'))}, 'Take a lease…'))), place));
  function show() {
    const leases = [...store.leases.values()].sort((one, other) => other.own - one.own || (one.expiresAt < other.expiresAt ? -1 : 1));
    if (!leases.length) return fill(place, emptyView('No leases', 'Everything is free. A tap on a live screen takes a lease, or an agent takes one with its calls.'));
    if (!cards.isConnected) fill(place, cards);
    list(cards, leases, lease => lease.id, card, (element, lease) => fill(element, [...card(lease).childNodes]));
    progress();
  }
  // The bars move with the time, without a new element.
  const progress = () => {
    for (const element of cards.children) {
      const lease = store.leases.get(element.dataset.id);
      const left = lease?.expiresAt ? (Date.parse(lease.expiresAt) - Date.now()) / 1000 / lease.seconds : 0;
      element.style.setProperty('--left', String(Math.min(1, Math.max(0, left))));
    }
  };
  const end = subscribe(['leases', 'endpoints', 'devices'], show);
  const timer = setInterval(progress, 1000);
  show();
  return () => { end(); clearInterval(timer); };
}

function card(lease) {
  const device = lease.device && store.devices.get(lease.device);
  const path = `/v1/leases/${encodeURIComponent(lease.id)}`;
  const remove = async () => { await api('DELETE', path); await refresh('leases'); };
  return h('article', {class: ['v-card v-lease', lease.own && 'is-own'], dataset: {row: '', id: lease.id}, tabindex: '-1'},
    h('div', null, h('h3', null, endpointLink(lease.endpoint)), lease.device && h('p', {class: 'v-sub'}, h('a', {href: `#/d/${encodeURIComponent(lease.device)}`}, icon('phone'), ' ', foreign(device ? deviceName(device) : lease.device)), ' and all its apps')),
    h('div', null, h('p', null, icon('lock'), ' ', lease.own ? h('b', null, 'You') : foreign(lease.holder, {class: 'v-strong'})), lease.note && h('p', {class: 'v-sub'}, foreign(lease.note)), lease.waiting > 0 && h('p', {class: 'v-sub'}, `${lease.waiting} waiting`)),
    h('div', {class: 'v-lease-time'}, lease.expiresAt ? h('p', null, time(lease.expiresAt, {left: true}), ' left of ', spanText(lease.seconds)) : h('p', {class: 'v-hint'}, 'The end is known to its host only.'), h('span', {class: 'v-progress', 'aria-hidden': 'true'})),
    h('div', {class: 'v-actions'},
      lease.own && h('button', {type: 'button', onclick: ({currentTarget}) => act(currentTarget, async () => { await api('POST', '/v1/leases', {endpoint: lease.endpoint, seconds: lease.seconds, renew: lease.id}); await refresh('leases'); }, 'The lease starts again.')}, 'Extend'),
      lease.own ? h('button', {type: 'button', onclick: ({currentTarget}) => act(currentTarget, remove, 'The lease has ended.')}, 'End')
        : may('admin') && dangerButton('Break', {title: 'Break this lease?', action: 'Break the lease', text: `The lease of ${lease.holder} on ${lease.endpoint} ends now${lease.device ? ', also for the other apps of the phone' : ''}. Its work may fail.${lease.waiting ? ' The next waiting client gets it.' : ''}`}, remove, 'The lease is broken.')));
}

/** Opens the form to take a lease. If another client has it, the person may wait or break it. */
export function leaseDialog(wanted) {
  const targets = [...store.endpoints.values()].filter(endpoint => endpoint.state !== 'blocked').sort((one, other) => titleOf(one).localeCompare(titleOf(other)));
  const endpoint = select(targets.map(one => [one.id, one.id]), {});
  if (wanted) endpoint.value = wanted;
  const seconds = select(TIMES);
  seconds.value = '600';
  const note = h('input', {type: 'text', maxlength: '200', placeholder: 'unlocking it by hand'});
  const wait = h('input', {type: 'checkbox'});
  const status = h('p', {class: 'v-error', role: 'alert'});
  const button = h('button', {type: 'submit', class: 'primary'}, 'Take the lease');
  let waiting = null;
  const form = h('form', {class: 'v-form-body', onsubmit: take}, field('App', endpoint, 'The lease covers the phone of the app too.'), h('div', {class: 'v-grid'}, field('For', seconds), field('Note', note, 'Others see it.')),
    h('label', {class: 'v-check'}, wait, h('span', null, h('b', null, 'Wait for my turn'), h('span', {class: 'v-sub'}, 'If another client has it, wait up to an hour. Closing this dialog gives up the place.'))), status, h('div', {class: 'v-actions'}, button));
  async function take(event) {
    event.preventDefault();
    button.disabled = true;
    waiting = new AbortController();
    setText(status, wait.checked ? 'Waiting for your turn…' : '');
    try {
      await api('POST', '/v1/leases', {endpoint: endpoint.value, seconds: Number(seconds.value), ...note.value.trim() && {note: note.value.trim()}, ...wait.checked && {waitSeconds: 3600}}, {signal: waiting.signal});
      opened.close();
      refresh('leases').catch(noticeProblem);
    } catch (error) { if (error.name !== 'AbortError') setText(status, `${error.message} ${error.hint ?? ''}`); }
    button.disabled = false;
  }
  const opened = dialog({title: 'Take a lease', body: form});
  opened.closed.then(() => waiting?.abort());
}
