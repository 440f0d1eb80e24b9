// Which endpoints the bench shows, and in which groups.
import {deviceName, hostOf, leaseOf, store, titleOf} from './store.js';
import {routesOf, routeText, tunnelsOf} from './rows.js';

const derived = new WeakMap();
// Each frame looks at all endpoints, so what follows from one is made once, and most frames make no garbage of it.
function derive(endpoint) {
  let found = derived.get(endpoint);
  if (!found) {
    derived.set(endpoint, found = {place: endpoint.location?.udid ?? `m:${endpoint.location?.host ?? ''}`,
      order: `${endpoint.state === 'offline' ? 1 : 0}${titleOf(endpoint).slice(0, 80).toLowerCase()}\n${endpoint.id}`});
  }
  return found;
}
/** Returns the phone or the machine of an endpoint as a key. */
export const placeOf = (endpoint) => derive(endpoint).place;
const textOf = (endpoint) => (derive(endpoint).text ??= [endpoint.id, endpoint.app, endpoint.name, endpoint.kind, endpoint.server, endpoint.version, endpoint.location?.host,
  endpoint.location?.udid, endpoint.location?.deviceName, ...routesOf(endpoint).map(routeText)].map((part) => String(part ?? '').slice(0, 300)).join('\n').toLowerCase());

/** Returns whether an endpoint is at a network address that still waits for an approval. */
export const needsApproval = (endpoint) => !['approved', 'denied'].includes(endpoint.approval) && (endpoint.state === 'online' || endpoint.state === 'suspect');

const FIELDS = {
  kind: (endpoint, value) => endpoint.kind.toLowerCase().includes(value),
  state: (endpoint, value) => endpoint.state.startsWith(value),
  host: (endpoint, value) => hostOf(endpoint).toLowerCase().includes(value),
  is: (endpoint, value) => (value === 'leased' ? Boolean(leaseOf(endpoint)) : value === 'pending' ? needsApproval(endpoint)
    : value === 'forwarded' ? tunnelsOf(`e:${endpoint.id}`).length > 0 : false),
};

/** Returns a function that tells whether an endpoint passes `{q, state: Set, kind, device, host}`. */
export function matcher({q, state, kind, device, host}) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, field, value] = /^(\w+):(.*)$/.exec(word) ?? [];
    return Object.hasOwn(FIELDS, field ?? '') ? (endpoint) => FIELDS[field](endpoint, value) : (endpoint) => {
      if (textOf(endpoint).includes(word)) return true;
      const phone = store.devices.get(endpoint.location?.udid);
      return Boolean(phone && `${phone.label ?? ''}\n${phone.name ?? ''}\n${phone.note ?? ''}`.toLowerCase().includes(word)) ||
        Boolean(leaseOf(endpoint)?.holder.toLowerCase().includes(word));
    };
  });
  return (endpoint) => (!state.size || state.has(endpoint.state) || (state.has('approval') && needsApproval(endpoint))) &&
    (!kind || endpoint.kind === kind) && (!device || placeOf(endpoint) === device) && (!host || hostOf(endpoint) === host) && words.every((word) => word(endpoint));
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Returns the groups: `[{key, title, host, sections: [{key, device, machine, endpoints}]}]`. By device, a group is a host
 * of the team, and a section a phone or a machine.
 */
export function groupsOf(endpoints, by, {showsEmptyDevices}) {
  const sorted = endpoints.toSorted((a, b) => compare(derive(a).order, derive(b).order));
  if (by !== 'device') {
    const groups = new Map();
    for (const endpoint of sorted) {
      const title = by === 'app' ? titleOf(endpoint) : by === 'kind' ? endpoint.kind : by === 'state' ? endpoint.state : '';
      let group = groups.get(title);
      if (!group) groups.set(title, group = {key: `g:${title}`, title, sections: [{key: `s:${title}`, endpoints: []}]});
      group.sections[0].endpoints.push(endpoint);
    }
    return [...groups.values()].sort((a, b) => compare(a.title.toLowerCase(), b.title.toLowerCase()));
  }
  const own = store.status?.host ?? '';
  const groups = new Map();
  const group = (host) => {
    if (!groups.has(host)) groups.set(host, {key: `h:${host}`, title: host, host, sections: new Map()});
    return groups.get(host).sections;
  };
  const add = (sections, host, place, name, part) => {
    const section = {key: `${host}|${place}`, endpoints: [], name, ...part};
    sections.set(place, section);
    return section;
  };
  if (showsEmptyDevices) {
    if (own) group(own);
    for (const name of store.hosts.keys()) group(name);
    for (const device of store.devices.values()) {
      const host = device.routes?.[0]?.host.name ?? own;
      // A phone on the cable and on Wi-Fi is one section, of its better way.
      if (!group(host).has(device.udid)) add(group(host), host, device.udid, deviceName(device), {device});
    }
  }
  for (const endpoint of sorted) {
    const host = hostOf(endpoint);
    const sections = group(host);
    const place = placeOf(endpoint);
    let section = sections.get(place);
    if (!section) {
      const {udid, deviceName: reported, host: machine = ''} = endpoint.location ?? {};
      const device = store.devices.get(udid);
      section = !udid ? add(sections, host, place, machine, {machine})
        : add(sections, host, place, device ? deviceName(device) : reported ?? udid, {device: device ?? {udid, name: reported, isAway: true}});
    }
    section.endpoints.push(endpoint);
  }
  const order = (a) => `${a.device ? (a.device.isAway ? 1 : 0) : 2}${a.name.slice(0, 80).toLowerCase()}`;
  return [...groups.values()].map((group) => ({...group, sections: [...group.sections.values()].map((a) => [order(a), a]).sort(([a], [b]) => compare(a, b)).map(([, a]) => a)}))
    .sort((a, b) => (a.host === own ? -1 : b.host === own ? 1 : compare(a.title, b.title)));
}
