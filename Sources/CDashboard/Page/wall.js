// The wall: the bench for a big screen, in large type. It only shows; Esc returns to the bench.
import {fill, foreign, h, icon, list, printable, setText, stateBadge, time} from './dom.js';
import {sortedProblems} from './problems.js';
import {callsOf, deviceName, leaseOf, leaseOfDevice, store, subscribe, titleOf} from './store.js';
import {needsApproval, placeOf} from './filter.js';

export const title = 'Wall';
const SHOWN_APPS = 6;

export function render(root) {
  const clock = h('span.wall-clock');
  const counts = h('div.wall-counts');
  const problems = h('ul.wall-problems');
  const places = h('div.wall-places');
  const none = h('p.dim', 'No phone and no app.');
  root.append(h('div.wall-head', h('h1', 'Patchbay'), counts, clock), problems, places, none,
    h('a.wall-leave', {href: '#/'}, 'Leave the wall (Esc)'));
  const tick = () => setText(clock, new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit'}).format(new Date()));
  tick();
  const timer = setInterval(tick, 5000);

  function update() {
    const all = [...store.endpoints.values()];
    const count = (state) => all.filter((endpoint) => endpoint.state === state).length;
    fill(counts, ['online', 'suspect', 'offline'].map((state) => stateBadge(state, {text: `${count(state)} ${state}`})),
      all.some(needsApproval) ? stateBadge('pending', {text: `${all.filter(needsApproval).length} to approve`}) : null);
    const shown = sortedProblems().filter(({severity}) => severity !== 'information').slice(0, 3);
    list(problems, shown, ({id}) => id, (problem) => h('li', {class: `wall-${problem.severity}`}, stateBadge(problem.severity, {label: false}), foreign(problem.text)));
    const items = new Map();
    for (const device of store.devices.values()) items.set(device.udid, {key: device.udid, device, endpoints: []});
    for (const endpoint of all) {
      const key = placeOf(endpoint);
      if (endpoint.state === 'offline') continue;
      if (!items.has(key)) items.set(key, {key, name: endpoint.location?.deviceName ?? endpoint.location?.host ?? '', endpoints: []});
      items.get(key).endpoints.push(endpoint);
    }
    // Phones that are used come first, then those with apps.
    const rank = (item) => (leaseOfDevice(item.key) || item.endpoints.some(({id}) => callsOf(id).length) ? 0 : item.endpoints.length ? 1 : 2);
    const sorted = [...items.values()].map((item) => [rank(item), item]).sort(([a, x], [b, y]) => a - b || (nameOf(x) < nameOf(y) ? -1 : 1)).map(([, item]) => item);
    none.hidden = sorted.length > 0;
    list(places, sorted.slice(0, 60), ({key}) => key, (item) => showPlace(h('section.wall-place'), item), showPlace);
  }

  update();
  const stop = subscribe('*', update);
  return () => {
    clearInterval(timer);
    stop();
  };
}

const nameOf = (item) => (item.device ? deviceName(item.device) : item.name) || 'Another machine';

function showPlace(element, item) {
  const {device, endpoints} = item;
  const lease = device ? leaseOfDevice(device.udid) : leaseOf(endpoints[0]);
  const calls = endpoints.flatMap(({id}) => callsOf(id));
  const key = JSON.stringify([nameOf(item), device?.note, lease, calls.map(({activity}) => activity), endpoints.map(({id, state, approval}) => id + state + approval)]);
  if (element.key === key) return element;
  element.key = key;
  element.classList.toggle('used', Boolean(lease));
  fill(element, h('h2', icon(device ? 'phone' : 'machine'), foreign(nameOf(item), 60, 'cut')),
    lease ? h('p.wall-lease', icon('lock'), foreign(lease.holder, 60, 'cut'), lease.expiresAt ? time(lease.expiresAt, {left: true}) : null)
      : device && h('p.wall-free', 'free'),
    device?.note ? h('p.note.cut', foreign(device.note, 80)) : null,
    h('ul', endpoints.slice(0, SHOWN_APPS).map((endpoint) => h('li', stateBadge(needsApproval(endpoint) ? 'pending' : endpoint.state, {label: false, text: endpoint.state}),
      foreign(titleOf(endpoint), 60, 'cut grow'), callsOf(endpoint.id).slice(0, 1).map((call) => h('span.wall-call.mono', printable(call.tool, 20)))))),
    endpoints.length > SHOWN_APPS ? h('small', `and ${endpoints.length - SHOWN_APPS} more`) : endpoints.length ? null : h('small', 'no app'));
  return element;
}
