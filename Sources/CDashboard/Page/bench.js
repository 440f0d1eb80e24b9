// The bench: hosts, phones on their cables, machines, and their apps, live.
import {codeLine, confirmDialog, fill, foreign, h, icon, list, notice, noticeProblem, setText, setForeign, time} from './dom.js';
import {mountAgents} from './agents.js';
import {groupsOf, matcher, needsApproval, placeOf} from './filter.js';
import {emptyView, setOptions} from './parts.js';
import {mountProblems} from './problems.js';
import {deviceLink, endpointRow, leaseChip, tunnelChip, tunnelsOf, updateExtras, updateRow, updateTunnelChip} from './rows.js';
import {api, may, path, who} from './session.js';
import {deviceName, hostOf, leaseOfDevice, store, subscribe} from './store.js';

export const title = 'Bench';

const STATES = [['online', 'online'], ['suspect', 'suspect'], ['offline', 'offline'], ['blocked', 'blocked'], ['approval', 'to approve']];
const GROUPS = [['device', 'By device'], ['app', 'By app'], ['kind', 'By kind'], ['state', 'By state'], ['none', 'No groups']];
// A frame has 16 ms, of which the browser needs a part for layout.
const BUDGET = 5;

export function render(root, {query}, ctx) {
  const filter = {q: query.get('q') ?? '', state: new Set((query.get('state') ?? '').split(',').filter(Boolean)), kind: query.get('kind') ?? '',
    device: query.get('device') ?? '', host: query.get('host') ?? ''};
  let by = GROUPS.some(([key]) => key === query.get('group')) ? query.get('group') : 'device';
  const rows = new Map();
  let queue = [];
  let frame = 0;

  const search = h('input.search', {type: 'search', dataset: {search: ''}, value: filter.q, placeholder: 'Search  /', 'aria-label': 'Search apps, phones, addresses and holders',
    title: 'Words, or kind: state: host: is:leased is:pending is:forwarded', oninput: () => change('q', search.value)});
  const chips = STATES.map(([key, label]) => {
    const count = h('span.number', '0');
    const button = h('button', {class: `filter-chip state state-${key === 'approval' ? 'pending' : key}`, 'aria-pressed': String(filter.state.has(key)),
      onclick: () => {
        filter.state.has(key) ? filter.state.delete(key) : filter.state.add(key);
        button.setAttribute('aria-pressed', String(filter.state.has(key)));
        change('state', [...filter.state].join(','), true);
      }}, h('i.shape', {'aria-hidden': 'true'}), count, ` ${label}`);
    return {key, button, count};
  });
  const choose = (name, label) => h('select', {'aria-label': label, onchange: ({target}) => change(name, target.value)});
  const selects = {kind: choose('kind', 'Kind'), device: choose('device', 'Phone or machine'), host: choose('host', 'Host')};
  const group = h('select', {'aria-label': 'Group', onchange: () => { by = group.value; ctx.setQuery({group: by === 'device' ? null : by}); rebuild(); }},
    GROUPS.map(([key, label]) => h('option', {value: key, selected: key === by}, label)));
  const summary = h('span.dim');
  const prune = h('button.quiet', {hidden: true, onclick: () => removeOffline()}, 'Remove offline…');
  const content = h('div');
  const head = h('div.page-head', h('h1', 'Bench'), summary);
  const controls = h('div.controls', search, h('div.filter-chips', {role: 'group', 'aria-label': 'States'}, chips.map(({button}) => button)),
    selects.kind, selects.device, selects.host, group, prune);
  const waiting = h('div.skeleton', {'aria-hidden': 'true'}, Array.from({length: 8}, () => h('i')));
  root.append(head, waiting);

  function change(name, value, isSet = false) {
    if (!isSet) filter[name] = value;
    ctx.setQuery({[name]: value || null});
    update(new Set(['endpoints']));
  }
  function rebuild() {
    rows.clear();
    queue = [];
    fill(content);
    list(content, [], () => '', () => null);
    update(new Set(['endpoints']));
  }
  const clearFilter = () => {
    Object.assign(filter, {q: '', kind: '', device: '', host: ''});
    filter.state.clear();
    search.value = '';
    for (const {button} of chips) button.setAttribute('aria-pressed', 'false');
    ctx.setQuery({q: null, state: null, kind: null, device: null, host: null});
    update(new Set(['endpoints']));
  };

  async function removeOffline() {
    const gone = [...store.endpoints.values()].filter((endpoint) => endpoint.state === 'offline' && matcher(filter)(endpoint));
    if (!await confirmDialog({title: `Remove ${gone.length} offline apps?`, danger: true, action: 'Remove',
      text: `Their IDs are released, and their approvals and secrets end: ${gone.slice(0, 8).map(({id}) => id).join(', ')}${gone.length > 8 ? ' …' : ''}`})) return;
    let removed = 0;
    for (const {id} of gone) {
      try {
        await api('DELETE', path('endpoints', id));
        removed += 1;
      } catch (error) {
        noticeProblem(error);
        break;
      }
    }
    notice(`${removed} apps removed.`);
  }

  function offer(name, all, options) {
    setOptions(selects[name], all, options, filter[name]);
    selects[name].hidden = options.length < 2 && !filter[name];
  }

  function showControls(endpoints) {
    const counts = {online: 0, suspect: 0, offline: 0, blocked: 0, approval: 0};
    const [kinds, places, hosts] = [new Set(), new Map(), new Set()];
    for (const endpoint of endpoints) {
      counts[endpoint.state] += 1;
      if (needsApproval(endpoint)) counts.approval += 1;
      kinds.add(endpoint.kind);
      hosts.add(hostOf(endpoint));
      const place = placeOf(endpoint);
      if (!places.has(place)) {
        const device = store.devices.get(place);
        places.set(place, (device ? deviceName(device) : endpoint.location?.deviceName ?? endpoint.location?.host) || 'Another machine');
      }
    }
    for (const {key, button, count} of chips) {
      setText(count, counts[key]);
      button.classList.toggle('zero', counts[key] === 0);
    }
    offer('kind', 'All kinds', [...kinds].sort().map((kind) => [kind, kind]));
    offer('device', 'All devices', [...places].sort(([, a], [, b]) => (a < b ? -1 : 1)));
    offer('host', 'All hosts', [...hosts].filter(Boolean).sort().map((host) => [host, host]));
    prune.hidden = !(who?.isOwner && counts.offline > 0 && filter.state.size === 1 && filter.state.has('offline'));
    const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;
    setText(summary, [count(endpoints.length, 'app', 'apps'), count(store.devices.size, 'phone', 'phones'), ...(store.hosts.size ? [`${store.hosts.size + 1} hosts`] : []),
      count(store.tunnels.size, 'tunnel', 'tunnels'), count(store.leases.size, 'lease', 'leases')].join(' · '));
  }

  let wasShown = false;
  function update(topics) {
    if (!wasShown) {
      if (!store.loaded) return;
      wasShown = true;
      waiting.remove();
      cleanups.push(mountProblems(root));
      cleanups.push(mountAgents(root));
      root.append(controls, content);
    }
    if (['endpoints', 'devices', 'hosts', 'status'].some((topic) => topics.has(topic))) showGroups();
    if (topics.has('leases') || topics.has('tunnels')) for (const section of content.querySelectorAll('.section')) showSectionHead(section, section.item);
    if (topics.has('leases') || topics.has('tunnels') || topics.has('agents')) for (const row of rows.values()) updateExtras(row);
  }

  function showGroups() {
    const all = [...store.endpoints.values()];
    const isFiltered = Boolean(filter.q || filter.state.size || filter.kind || filter.device || filter.host);
    showControls(all);
    const shown = isFiltered ? all.filter(matcher(filter)) : all;
    const groups = groupsOf(shown, by, {showsEmptyDevices: !isFiltered});
    if (!groups.some(({sections}) => sections.length) && !(groups.length > 1)) {
      queue = [];
      rows.clear();
      list(content, [{key: isFiltered ? 'nothing' : 'empty'}], ({key}) => key, () => (isFiltered ? nothingFound(clearFilter) : emptyBench()));
      return;
    }
    queue = [];
    list(content, groups, ({key}) => key, groupElement, updateGroup);
    work();
  }

  function groupElement(item) {
    const heading = h('h2.group-title');
    const element = h('section.group', {class: item.host ? 'team-host' : ''}, item.title || by !== 'device' ? heading : null, h('div.sections'));
    element.heading = heading;
    updateGroup(element, item);
    return element;
  }
  function updateGroup(element, item) {
    if (element.heading.isConnected || element.contains(element.heading)) {
      const count = item.sections.reduce((sum, {endpoints}) => sum + endpoints.length, 0);
      const isOwn = item.host === store.status?.host;
      const stale = store.hosts.get(item.host)?.staleSince;
      const key = `${item.title}|${count}|${stale}|${isOwn}`;
      if (element.key !== key) {
        element.key = key;
        fill(element.heading, item.host && icon('host'), foreign(item.title || 'All apps', 80, 'cut'), item.host && isOwn && h('span.chip', 'this host'),
          h('small', count), stale && h('span.chip.warn', 'registry unreachable since ', time(stale)));
      }
    }
    list(element.lastChild, item.sections, (section) => section.key, sectionElement, updateSection);
  }
  function sectionElement(item) {
    const header = item.device || item.machine !== undefined ? h('header.section-head') : null;
    const element = h('section.section', header, h('ul.rows'));
    element.style.setProperty('--n', item.endpoints.length);
    updateSection(element, item);
    return element;
  }
  function updateSection(element, item) {
    const isSame = element.item && element.item.endpoints.length === item.endpoints.length && element.isDone && item.endpoints.every((endpoint, at) => endpoint === element.item.endpoints[at]);
    const isSameHead = element.item && element.item.device === item.device && element.item.machine === item.machine && element.item.endpoints.length === item.endpoints.length;
    element.item = item;
    if (!isSameHead) showSectionHead(element, item);
    if (isSame) return;
    element.isDone = false;
    queue.push(element);
  }

  // Rows are built and changed within a budget a frame, so that 1,000 apps never make the page wait.
  function work() {
    cancelAnimationFrame(frame);
    const end = performance.now() + BUDGET;
    while (queue.length && performance.now() < end) {
      const element = queue[0];
      const {endpoints} = element.item;
      const rowList = element.lastChild;
      // A long section without groups is built in steps, too.
      const limit = element.built === undefined || element.built < endpoints.length ? (element.built ?? 0) + 40 : endpoints.length;
      list(rowList, endpoints.slice(0, limit), ({id}) => id, (endpoint) => {
        const row = endpointRow(endpoint, by !== 'device');
        rows.set(endpoint.id, row);
        return row;
      }, updateRow);
      element.built = Math.min(limit, endpoints.length);
      if (element.built < endpoints.length) continue;
      element.style.setProperty('--n', endpoints.length);
      element.isDone = true;
      queue.shift();
    }
    if (queue.length) frame = requestAnimationFrame(work);
    else dropRows();
  }
  function dropRows() {
    if (rows.size <= store.endpoints.size * 1.2 + 50) return;
    for (const [id, row] of rows) if (!row.isConnected) rows.delete(id);
  }

  const cleanups = [subscribe(['endpoints', 'devices', 'hosts', 'status', 'leases', 'tunnels', 'agents', 'connection'], update)];
  update(new Set(['endpoints']));
  return () => {
    cancelAnimationFrame(frame);
    for (const cleanup of cleanups) cleanup();
  };
}

/** Shows the head of a phone or a machine: how it is connected, what it is, who has it. */
function showSectionHead(section, item) {
  const header = section.querySelector(':scope > .section-head');
  if (!header) return;
  const {device, machine} = item;
  if (!device) {
    if (header.key === machine) return;
    header.key = machine;
    fill(header, h('span.wire.stem', icon('machine')), h('h3.cut', foreign(machine || 'Another machine', 80)));
    return;
  }
  const lease = leaseOfDevice(device.udid);
  const tunnels = tunnelsOf(`d:${device.udid}`);
  const key = JSON.stringify([device, lease, item.endpoints.length === 0, tunnels.map(({id}) => id)]);
  if (header.key !== key) {
    header.key = key;
    const others = (device.routes ?? []).slice(1);
    const transport = device.routes?.[0]?.transport ?? device.transport;
    const name = h('bdi.cut');
    setForeign(name, deviceName(device), 80);
    fill(header, h('span.wire.stem', {class: [transport === 'network' ? 'wire-wifi' : 'wire-cable', device.isAway ? 'none' : 'preferred'],
      title: device.isAway ? 'Not attached' : transport === 'network' ? 'On Wi-Fi' : 'On a cable'}, icon('phone')),
    h('h3.cut', h('a', {href: deviceLink(device.udid), dataset: {row: ''}}, name)),
    device.label && device.name && foreign(device.name, 60, 'dim cut'),
    h('span.dim.cut.device-facts', foreign([device.productType, device.productVersion].filter(Boolean).join(' · '), 80)),
    device.isAway ? h('span.chip', 'not attached') : transport === 'network' ? h('span.chip', icon('wifi'), 'Wi-Fi') : null,
    others.length ? h('span.chip', {title: 'The phone is attached to these hosts, too'}, 'also ', others.map((route) => `${route.host.name} (${route.transport === 'usb' ? 'cable' : 'Wi-Fi'})`).join(', ')) : null,
    device.note && foreign(device.note, 120, 'note cut'),
    lease && leaseChip(lease),
    h('span.head-tunnels', tunnels.slice(0, 2).map(tunnelChip)),
    item.endpoints.length === 0 && h('small.nothing', 'No debug server found on this phone'));
  }
  const shown = header.querySelector('.head-tunnels')?.children ?? [];
  for (const [at, tunnel] of tunnels.slice(0, 2).entries()) if (shown[at]) updateTunnelChip(shown[at], tunnel);
}

const nothingFound = (clear) => emptyView('Nothing matches', 'No app, phone or address has these words and states. ', h('button', {onclick: clear}, 'Clear the filter'));
function emptyBench() {
  return h('div.empty', h('h2', 'No app yet'),
    h('p', 'Attach an iPhone with a cable, or run a development build with a debug server on this network. It appears here by itself.'),
    may('admin') ? h('div.empty-commands', codeLine('patchbay doctor', 'Copy the command'), codeLine('patchbay add NAME 192.168.1.30:8080 --kind mcp', 'Copy the command')) : null);
}
