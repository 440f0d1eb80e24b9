// Leases: who has which phone or app, until when, and who waits. Take one, end your own, break another one.
import {fill, foreign, h, icon, list, noticeProblem, time} from './dom.js';
import {api, may} from './session.js';
import {refresh, store, subscribe, titleOf} from './store.js';
import {actButton, appLink, check, emptyView, endLeaseButton, field, formDialog, page, phoneLink, select, spanText} from './parts.js';

export const title = 'Leases';

const TIMES = [120, 600, 1800, 3600, 7200, 28800].map(value => [String(value), spanText(value)]);

export function render(root, params) {
  const cards = h('div.v-list');
  const place = h('div');
  page(root, 'Leases', 'Exclusive use of an app, and of its phone, for a while. Others may look and may not change anything.',
    may('endpoint.call') && h('button.primary', {onclick: () => leaseDialog(params.query.get('endpoint'))}, 'Take a lease…'), place);
  function show() {
    const leases = [...store.leases.values()].sort((one, other) => other.own - one.own || (one.expiresAt < other.expiresAt ? -1 : 1));
    if (!leases.length) return fill(place, emptyView('No leases', 'Everything is free. A tap on a live screen takes a lease, or an agent takes one with its calls.'));
    if (!cards.isConnected) fill(place, cards);
    list(cards, leases, lease => lease.id, card);
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
  return h('article.card.v-lease', {class: lease.own && 'is-own', dataset: {row: '', id: lease.id}, tabindex: '-1'},
    h('div', h('h3', appLink(lease.endpoint)), lease.device && h('p.v-sub', phoneLink({udid: lease.device}), ' and all its apps')),
    h('div', h('p', icon('lock'), ' ', lease.own ? h('b', 'You') : foreign(lease.holder, 300, 'v-strong')), lease.note && h('p.v-sub', foreign(lease.note)), lease.waiting > 0 && h('p.v-sub', `${lease.waiting} waiting`)),
    h('div', lease.expiresAt ? h('p', time(lease.expiresAt, {left: true}), ' left of ', spanText(lease.seconds)) : h('p.v-hint', 'The end is known to its host only.'), h('span.v-progress', {'aria-hidden': 'true'})),
    h('div.v-actions',
      lease.own && actButton('Extend', async () => { await api('POST', '/v1/leases', {endpoint: lease.endpoint, seconds: lease.seconds, renew: lease.id}); await refresh('leases'); }, 'The lease starts again.'),
      (lease.own || may('admin')) && endLeaseButton(lease, 'End')));
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
  const waiting = new AbortController();
  formDialog({title: 'Take a lease', submit: 'Take the lease'}, [field('App', endpoint, 'The lease covers the phone of the app too.'), h('div.v-grid', field('For', seconds), field('Note', note, 'Others see it.')),
    check(wait, 'Wait for my turn', 'If another client has it, wait up to an hour. Closing this dialog gives up the place.')], async status => {
    fill(status, wait.checked && 'Waiting for your turn…');
    await api('POST', '/v1/leases', {endpoint: endpoint.value, seconds: Number(seconds.value), ...note.value.trim() && {note: note.value.trim()}, ...wait.checked && {waitSeconds: 3600}}, {signal: waiting.signal});
    refresh('leases').catch(noticeProblem);
  }).closed.then(() => waiting.abort());
}
