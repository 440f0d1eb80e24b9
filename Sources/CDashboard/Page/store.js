// The state that the event stream brings, and subscriptions to it. Views read it and never change it.
import * as feed from './feed.js';
import {api, onSession} from './session.js';

/** The member of a list's answer and the key of its items, by topic. */
const TOPICS = {
  devices: ['devices', 'devices', 'udid'],
  hosts: ['hosts', 'hosts', 'name'],
  tunnels: ['tunnels', 'tunnels', 'id'],
  leases: ['leases', 'leases', 'id'],
  'access-requests': ['requests', 'requests', 'userCode'],
  invites: ['invites', 'invites', 'id'],
  grants: ['grants', 'grants', 'id'],
  agents: ['agents', 'agents', 'id'],
  problems: ['problems', 'problems', 'id'],
};
const ACTIVITY_LIMIT = 500;

export const store = {
  endpoints: new Map(), devices: new Map(), hosts: new Map(), tunnels: new Map(), leases: new Map(), requests: new Map(),
  invites: new Map(), grants: new Map(), agents: new Map(), problems: new Map(),
  /** Entries of activity, newest last. */
  activity: [],
  status: null,
  connection: {state: 'connecting', since: new Date().toISOString()},
  /** True after the first list of endpoints. */
  loaded: false,
};

const subscriptions = new Set();
let dirty = new Set();
let frame = 0;

function changed(topic) {
  dirty.add(topic);
  frame ||= requestAnimationFrame(flush);
}

function flush() {
  frame = 0;
  const topics = dirty;
  dirty = new Set();
  for (const subscription of [...subscriptions]) {
    if (!subscriptions.has(subscription)) continue;
    if (subscription.all || subscription.topics.some((topic) => topics.has(topic))) {
      try {
        subscription.run(topics);
      } catch (error) {
        // One view's failure must not stop the others.
        reportError(error);
      }
    }
  }
}

/**
 * Calls `run(topics)` at most once a frame after a change of a topic: a member of `store`, or `*`. A hidden page gets one
 * call when it is shown again. Returns the function that ends the subscription.
 */
export function subscribe(topics, run) {
  const names = [topics].flat();
  const subscription = {topics: names, all: names.includes('*'), run};
  subscriptions.add(subscription);
  return () => subscriptions.delete(subscription);
}

// An unchanged item keeps its identity, so that lists skip it.
function replaceItems(member, items, key) {
  const old = store[member];
  let isChanged = old.size !== items.length;
  const next = new Map();
  for (const item of items) {
    const before = old.get(item[key]);
    const isSame = before !== undefined && JSON.stringify(before) === JSON.stringify(item);
    isChanged ||= !isSame;
    next.set(item[key], isSame ? before : item);
  }
  if (!isChanged) return;
  store[member] = next;
  if (member === 'leases') indexLeases();
  if (member === 'agents') indexCalls();
  changed(member);
}

function apply(name, data) {
  if (name === 'snapshot') {
    store.endpoints = new Map(data.endpoints.map((endpoint) => [endpoint.id, endpoint]));
    store.loaded = true;
    changed('endpoints');
  } else if (name === 'endpoint') {
    if (data.kind === 'removed') store.endpoints.delete(data.endpoint.id);
    else store.endpoints.set(data.endpoint.id, data.endpoint);
    changed('endpoints');
  } else if (name === 'status') {
    store.status = data;
    changed('status');
  } else if (name === 'activity') {
    const {activity} = store;
    // A change concerns a recent entry, so the search begins at the end.
    let at = activity.length - 1;
    while (at >= 0 && activity[at].id > data.id) at -= 1;
    if (at >= 0 && activity[at].id === data.id) activity[at] = data;
    else activity.splice(at + 1, 0, data);
    if (activity.length > ACTIVITY_LIMIT) activity.splice(0, activity.length - ACTIVITY_LIMIT);
    changed('activity');
  } else if (name === 'activity-list') {
    store.activity = data;
    changed('activity');
  } else if (Object.hasOwn(TOPICS, name)) {
    const [member, list, key] = TOPICS[name];
    replaceItems(member, data[list] ?? [], key);
  }
}

let leasesByPlace = new Map();
function indexLeases() {
  leasesByPlace = new Map();
  for (const lease of store.leases.values()) {
    leasesByPlace.set(`e:${lease.endpoint}`, lease);
    if (lease.device) leasesByPlace.set(`d:${lease.device}`, lease);
  }
}
/** Returns the lease that covers an endpoint: its own, or that of its phone. */
export const leaseOf = (endpoint) =>
  leasesByPlace.get(`e:${endpoint.id}`) ?? (endpoint.location?.udid ? leasesByPlace.get(`d:${endpoint.location.udid}`) : undefined);
/** Returns the lease that covers a phone. */
export const leaseOfDevice = (udid) => leasesByPlace.get(`d:${udid}`);

let callsByEndpoint = new Map();
function indexCalls() {
  callsByEndpoint = new Map();
  for (const agent of store.agents.values()) {
    for (const call of agent.inFlight ?? []) {
      const calls = callsByEndpoint.get(call.endpoint) ?? [];
      calls.push({...call, agent});
      callsByEndpoint.set(call.endpoint, calls);
    }
  }
}
/** Returns the running calls of agents at an endpoint, each with its `agent`. */
export const callsOf = (id) => callsByEndpoint.get(id) ?? [];

/** Returns the name of the host whose broker reaches an endpoint; outside of a team the empty text. */
export const hostOf = (endpoint) => endpoint.host?.name ?? store.status?.host ?? '';
/** Returns what to call an endpoint: its app, or its name. */
export const titleOf = (endpoint) => endpoint.app || endpoint.name || endpoint.id;
/** Returns what to call a phone: its label, its name, or its UDID. */
export const deviceName = (device) => device.label || device.name || device.udid;

/** Asks for a topic now, for a view that just changed it. The event stream brings it too, up to a second later. */
export async function refresh(topic) {
  const answer = await api('GET', `/v1/${topic}`);
  apply(topic, answer);
}

function clear() {
  for (const [member] of Object.values(TOPICS)) store[member] = new Map();
  store.endpoints = new Map();
  Object.assign(store, {activity: [], status: null, loaded: false});
  indexLeases();
  indexCalls();
}

feed.listen((message) => {
  if (message.connection) {
    store.connection = message.connection;
    changed('connection');
  }
  for (const [name, data] of message.events ?? []) apply(name, data);
});

// A session that ends leaves nothing on the page, and the next one may see less.
onSession((signedIn) => {
  if (!signedIn) clear();
});
