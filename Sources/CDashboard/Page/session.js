// The session of this tab: its token, what it may do, and requests to the broker.
import * as feed from './feed.js';

const KEY = 'patchbay.session';
const listeners = new Set();
let token = null;

/** The caller: `{grant, isOwner, scopes, name, remote}`, or null before the sign-in. */
export let who = null;

/** A failed request, as the broker's problem document describes it (RFC 9457). */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || `The broker answered ${status}.`);
    Object.assign(this, {name: 'Problem', status, title: body.title ?? '', detail: body.detail ?? '', hint: body.hint ?? '', code: body.code ?? ''});
  }
}

/** Returns the path of a resource of the API; its parts may be any text. */
export const path = (...parts) => `/v1/${parts.map(encodeURIComponent).join('/')}`;

async function request(method, path, body, {signal, headers} = {}) {
  const all = {...headers};
  if (token) all.Authorization = `Bearer ${token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method, headers: all, body: body === undefined ? undefined : JSON.stringify(body), signal,
      cache: 'no-store', credentials: 'omit', redirect: 'error'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, {title: 'Not connected', detail: 'The broker does not answer', hint: 'The page tries again by itself.'});
  }
  if (response.ok || response.status === 304) return response;
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // A proxy's answer may have another form; the status remains.
  }
  throw new Problem(response.status, problem);
}

/** Sends a request with the session. Returns the decoded JSON, null without a body, or with `raw` the response. */
export async function api(method, path, body, {raw = false, ...options} = {}) {
  const used = token;
  try {
    const response = await request(method, path, body, options);
    if (raw) return response;
    const text = await response.text();
    return text ? JSON.parse(text) : null;
  } catch (error) {
    if (error.status === 401 && used && used === token) end();
    throw error;
  }
}

/** Returns whether the session has a scope. The broker checks again; this only hides what would be refused. */
export const may = (scope) => Boolean(who && (who.isOwner || who.scopes.has(scope)));

/** Calls a function with true after a sign-in and with false after the end of the session. */
export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function end() {
  token = null;
  who = null;
  sessionStorage.removeItem(KEY);
  for (const listener of [...listeners]) listener(false);
}

// A program that had this port while the broker was stopped can leave a service worker, which would read every answer.
async function refuseServiceWorker() {
  const workers = navigator.serviceWorker;
  if (!workers) return;
  for (const registration of await workers.getRegistrations()) await registration.unregister();
  if (workers.controller) {
    throw new Problem(0, {title: 'Not signed in', detail: 'Another program that used this address has left a service worker, which can read this page. It is removed now.',
      hint: 'Close all tabs of this page, and run patchbay dashboard again.'});
  }
}

/** Uses a token: of a dashboard session, or of a grant. Throws the broker's problem if the token is not valid. */
export async function useToken(candidate) {
  await refuseServiceWorker();
  const previous = token;
  token = candidate.trim();
  let answer;
  try {
    answer = await (await request('GET', '/v1/grants/self')).json();
  } catch (error) {
    token = previous;
    throw error;
  }
  // Another session may see less, so nothing of the previous one stays.
  if (previous && previous !== token) {
    who = null;
    for (const listener of [...listeners]) listener(false);
  }
  const grant = answer.grant ?? answer;
  const scopes = new Set(grant.permissions?.scopes ?? []);
  who = {grant, scopes, name: grant.name ?? '', remote: Boolean(grant.remote),
    isOwner: grant.binding?.dashboard !== undefined || scopes.has('admin')};
  sessionStorage.setItem(KEY, token);
  feed.open(token);
  for (const listener of [...listeners]) listener(true);
}

/** Exchanges the one-time code of `patchbay dashboard`. */
export async function exchange(code) {
  await refuseServiceWorker();
  const answer = await (await request('POST', '/v1/dashboard/sessions', {code})).json();
  await useToken(answer.token);
}

// A code in the address is removed before anything else, so that it is in no history, bookmark or screenshot.
function takeCode() {
  const match = /^#code=([^&]+)(?:&view=(.*))?$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', `${location.pathname}${match[2] ? `#${decodeURIComponent(match[2])}` : sessionStorage.getItem('patchbay.view') ?? '#/'}`);
  return decodeURIComponent(match[1]);
}

/** Tries the code of the address, the tab's own token, and then the session of another tab. Returns a problem or null. */
export async function restore() {
  const code = takeCode();
  try {
    await refuseServiceWorker();
  } catch (error) {
    return error;
  }
  if (code) {
    try {
      await exchange(code);
      return null;
    } catch (error) {
      return error;
    }
  }
  const own = sessionStorage.getItem(KEY);
  if (own) {
    try {
      await useToken(own);
      return null;
    } catch (error) {
      if (error.status !== 401) throw error;
      sessionStorage.removeItem(KEY);
    }
  }
  await new Promise((resolve) => {
    const done = () => { stop(); resolve(); };
    const stop = feed.listen(({session}) => {
      if (session === undefined) return;
      if (session) useToken(session).then(done, done);
      else done();
    });
    setTimeout(done, 1500);
    feed.askForSession();
  });
  return null;
}

/** Ends the session at the broker and in all tabs that share it. */
export async function signOut() {
  try {
    await request('DELETE', '/v1/grants/self');
  } catch (error) {
    if (error.status !== 401 && error.status !== 404) throw error;
  } finally {
    feed.close();
    end();
  }
}

feed.listen((message) => {
  if (message.connection?.state === 'signed-out' && token) end();
  // Another tab signed in while this one showed the sign-in.
  if (message.session && !token) useToken(message.session).catch(() => {});
});

addEventListener('hashchange', () => {
  const code = takeCode();
  if (code) exchange(code).then(() => dispatchEvent(new Event('hashchange')), (error) => dispatchEvent(new CustomEvent('code-refused', {detail: error})));
});
