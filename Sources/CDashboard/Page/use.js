// Use over a day: calls and failures by the hour, and each phone and grant with its leased time.
import {duration, fill, foreign, h, time} from './dom.js';
import {api} from './session.js';
import {emptyView, page, phoneLink, problemView, section, table} from './parts.js';

export const title = 'Use';

export function render(root) {
  const ending = new AbortController();
  const since = h('p.v-facts', 'Reading the counters…');
  const body = h('div');
  page(root, 'Use', since, null, body);
  async function load() {
    if (document.hidden) return;
    try {
      const usage = await api('GET', '/v1/usage', undefined, {signal: ending.signal});
      fill(since, 'Since ', time(usage.since), '. The broker counts in memory and starts again with each start.');
      const hours = usage.hours ?? [];
      const calls = hours.reduce((sum, hour) => sum + hour.calls, 0);
      const failures = hours.reduce((sum, hour) => sum + hour.failures, 0);
      if (!calls && !usage.devices?.length && !usage.grants?.length) return fill(body, emptyView('Nothing was used yet', 'The calls and leases of the last day appear here.'));
      fill(body,
        section('Calls by the hour', h('span.v-hint', `${calls} calls, ${failures} failed${calls ? ` (${percent(failures, calls)})` : ''}`), hourChart(hours)),
        section('Phones', null, useTable('Phone', usage.devices ?? [], item => phoneLink(item))),
        section('Grants', null, useTable('Grant', usage.grants ?? [], item => h('a', {href: `#/activity?client=${encodeURIComponent(item.id)}`}, foreign(item.name || item.id)))));
    } catch (error) { if (!ending.signal.aborted) fill(body, problemView(error, load)); }
  }
  const timer = setInterval(load, 60000);
  load();
  return () => { ending.abort(); clearInterval(timer); };
}

const percent = (part, whole) => `${(100 * part / whole).toFixed(part && part / whole < 0.1 ? 1 : 0)} %`;

function hourChart(hours) {
  const most = Math.max(1, ...hours.map(hour => hour.calls));
  const label = at => new Date(at).toLocaleTimeString(undefined, {hour: '2-digit', minute: '2-digit'});
  return h('figure.v-chart-frame', h('span.v-chart-most', String(most)),
    h('ol.v-chart', {'aria-label': 'Calls by the hour'}, hours.map(({at, calls, failures}, index) => h('li', {title: `${label(at)}: ${calls} calls, ${failures} failed`, style: {'--calls': String(calls / most), '--failed': String(calls ? failures / calls : 0)}},
      h('span.sr', `${label(at)}: ${calls} calls, ${failures} failed`), h('i', {'aria-hidden': 'true'}), index % 4 === 0 && h('small', {'aria-hidden': 'true'}, label(at))))));
}

function useTable(name, items, link) {
  if (!items.length) return h('p.v-hint', 'None was used.');
  const sorted = [...items].sort((one, other) => other.leasedSeconds - one.leasedSeconds || other.calls - one.calls);
  const most = Math.max(1, ...items.map(item => item.leasedSeconds));
  const calls = Math.max(1, ...items.map(item => item.calls));
  const bar = (value, text) => h('td.v-bar-cell', {style: {'--part': String(value)}}, h('span', text));
  return table('.v-use', [name, 'Leased', 'Calls', 'Failed'],
    h('tbody', sorted.map(item => h('tr', {dataset: {row: ''}, tabindex: '-1'}, h('th', {scope: 'row'}, link(item)), bar(item.leasedSeconds / most, item.leasedSeconds ? duration(item.leasedSeconds * 1000) : '—'), bar(item.calls / calls, String(item.calls)),
      h('td', item.failures ? `${item.failures} (${percent(item.failures, Math.max(1, item.calls))})` : '—')))));
}
