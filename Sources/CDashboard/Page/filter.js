// Which endpoints the bench shows, and in which groups.
import {deviceName, hostOf, leaseOf, store, titleOf} from './store.js';
import {routesOf, routeText, tunnelsOf} from './rows.js';

const texts = new WeakMap();
// An endpoint's own text is built once, because each key in the search field looks at all of them.
function textOf(endpoint) {
  let text = texts.get(endpoint);
  if (text === undefined) {
    text = [endpoint.id, endpoint.app, endpoint.name, endpoint.kind, endpoint.server, endpoint.version, endpoint.location?.host, endpoint.location?.udid,
      endpoint.location?.deviceName, ...routesOf(endpoint).map(routeText)].map((part) => String(part ?? '').slice(0, 300)).join('\n').toLowerCase();
    texts.set(endpoint, text);
  }
  return text;
}

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

/** Returns the phone or the machine of an endpoint as a key. */
export const placeOf = (endpoint) => endpoint.location?.udid ?? `m:${endpoint.location?.host ?? ''}`;

const sortKeys = new WeakMap();
function sortKey(endpoint) {
  let key = sortKeys.get(endpoint);
  if (key === undefined) {
    key = `${endpoint.state === 'offline' ? 1 : 0}${titleOf(endpoint).slice(0, 80).toLowerCase()}\n${endpoint.id}`;
    sortKeys.set(endpoint, key);
  }
  return key;
}
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Returns the groups: `[{key, title, host, sections: [{key, device, machine, endpoints}]}]`. By device, a group is a host
 * of the team, and a section a phone or a machine.
 */
export function groupsOf(endpoints, by, {showsEmptyDevices}) {
  const sorted = endpoints.map((endpoint) => [sortKey(endpoint), endpoint]).sort(([a], [b]) => compare(a, b)).map(([, endpoint]) => endpoint);
  if (by !== 'device') {
    const groups = new Map();
    for (const endpoint of sorted) {
      const title = by === 'app' ? titleOf(endpoint) : by === 'kind' ? endpoint.kind : by === 'state' ? endpoint.state : '';
      const group = groups.get(title) ?? {key: `g:${title}`, title, sections: [{key: `s:${title}`, endpoints: []}]};
      group.sections[0].endpoints.push(endpoint);
      groups.set(title, group);
    }
    return [...groups.values()].sort((a, b) => compare(a.title.toLowerCase(), b.title.toLowerCase()));
  }
  const own = store.status?.host ?? '';
  const groups = new Map();
  const section = (host, place, make) => {
    const group = groups.get(host) ?? {key: `h:${host}`, title: host, host, sections: new Map()};
    groups.set(host, group);
    const key = `${host}|${place}`;
    if (!group.sections.has(key)) group.sections.set(key, {key, endpoints: [], ...make()});
    return group.sections.get(key);
  };
  if (showsEmptyDevices) {
    if (own) groups.set(own, {key: `h:${own}`, title: own, host: own, sections: new Map()});
    for (const name of store.hosts.keys()) groups.set(name, {key: `h:${name}`, title: name, host: name, sections: new Map()});
    for (const device of store.devices.values()) section(device.routes?.[0]?.host.name ?? own, device.udid, () => ({device, name: deviceName(device)}));
  }
  for (const endpoint of sorted) {
    const {udid} = endpoint.location ?? {};
    section(hostOf(endpoint), placeOf(endpoint), () => {
      const device = store.devices.get(udid);
      if (udid) return {device: device ?? {udid, name: endpoint.location.deviceName, isAway: true}, name: device ? deviceName(device) : endpoint.location.deviceName ?? udid};
      return {machine: endpoint.location?.host ?? '', name: endpoint.location?.host ?? ''};
    }).endpoints.push(endpoint);
  }
  const order = (a) => `${a.device ? (a.device.isAway ? 1 : 0) : 2}${a.name.slice(0, 80).toLowerCase()}`;
  return [...groups.values()].map((group) => ({...group, sections: [...group.sections.values()].map((a) => [order(a), a]).sort(([a], [b]) => compare(a, b)).map(([, a]) => a)}))
    .sort((a, b) => (a.host === own ? -1 : b.host === own ? 1 : compare(a.title, b.title)));
}
