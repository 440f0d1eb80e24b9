// The tab's end of the event stream: through the SharedWorker, or with an own stream where there is none.
import {Sessions} from './feed-worker.js';

const listeners = new Set();
const deliver = (message) => {
  for (const listener of [...listeners]) listener(message);
};

function openPort() {
  if (typeof SharedWorker !== 'undefined') {
    try {
      const worker = new SharedWorker(new URL('./feed-worker.js', import.meta.url), {type: 'module', name: 'patchbay'});
      worker.port.onmessage = ({data}) => deliver(data);
      return (message) => worker.port.postMessage(message);
    } catch {
      // Some private windows have the class and refuse its use.
    }
  }
  const receive = new Sessions().connect((message) => queueMicrotask(() => deliver(message)));
  return receive;
}

const post = openPort();
let token = null;

/** Receives `{session}`, `{connection}` and `{events: [[name, data], …]}`. Returns the function that ends it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Asks the other tabs for their session: `{session: TOKEN}`, or null now and a token as soon as a tab has one. */
export const askForSession = () => post({hello: true});
/** Opens the stream of a session. */
export function open(session) {
  token = session;
  post({session});
}
/** Ends the session in all its tabs. */
export function close() {
  token = null;
  post({signedOut: true});
}

// A port does not report that its tab has closed.
addEventListener('pagehide', () => post({bye: true}));
addEventListener('pageshow', (event) => {
  if (event.persisted && token) post({session: token});
});
addEventListener('online', () => post({retry: true}));
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) post({retry: true});
});
