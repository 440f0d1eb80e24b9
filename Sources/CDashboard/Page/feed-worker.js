// One event stream for all tabs of a session. As a SharedWorker this file serves every tab, because a browser opens at
// most six connections to one origin over HTTP/1.1. Without SharedWorker the page imports it and has its own stream.

const RETRY = [500, 1000, 2000, 4000, 5000];
// The broker sends a comment every 15 s, so a longer silence is a dead connection.
const SILENCE = 40000;
const ACTIVITY_LIMIT = 500;
const TOPICS = ['devices', 'hosts', 'status', 'tunnels', 'leases', 'access-requests', 'invites', 'grants', 'agents', 'problems'];

/** The stream of one session, and the newest state for tabs that open later. */
export class Stream {
  constructor(token) {
    Object.assign(this, {token, tabs: new Set(), endpoints: new Map(), whole: {}, activity: new Map(), lastID: null, attempt: 0, loaded: false});
    this.connection = {state: 'connecting', since: new Date().toISOString()};
    this.run();
  }

  add(post) {
    this.tabs.add(post);
    post({connection: this.connection});
    if (this.loaded) {
      post({events: [['snapshot', {endpoints: [...this.endpoints.values()]}], ...Object.entries(this.whole),
        ['activity-list', [...this.activity.values()]]]});
    }
    this.retryNow();
  }

  remove(post) {
    this.tabs.delete(post);
    return this.tabs.size === 0;
  }

  end() {
    this.ended = true;
    this.abort?.abort();
    this.wake?.();
  }

  retryNow() {
    if (this.connection.state !== 'live') this.wake?.();
  }

  post(message) {
    for (const post of this.tabs) post(message);
  }

  setConnection(state) {
    if (this.connection.state === state) return;
    // A stale page says which time it shows, so `since` is the time of the last byte.
    this.connection = {state, since: new Date(state === 'stale' ? this.heardAt ?? Date.now() : Date.now()).toISOString()};
    this.post({connection: this.connection});
  }

  async run() {
    while (!this.ended) {
      let wait = null;
      try {
        wait = await this.read();
      } catch {
        // The reason of a lost connection does not matter: the stream tries again.
      }
      if (this.ended) return;
      if (wait === 'signed-out') {
        this.ended = true;
        return this.setConnection('signed-out');
      }
      if (this.loaded || this.attempt > 0) this.setConnection('stale');
      const delay = wait ?? RETRY[Math.min(this.attempt++, RETRY.length - 1)];
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, delay);
      });
      this.wake = null;
    }
  }

  async read() {
    this.abort = new AbortController();
    let watchdog;
    const heard = () => {
      this.heardAt = Date.now();
      clearTimeout(watchdog);
      watchdog = setTimeout(() => this.abort.abort(), SILENCE);
    };
    const headers = {Authorization: `Bearer ${this.token}`, Accept: 'text/event-stream'};
    if (this.lastID !== null) headers['Last-Event-ID'] = this.lastID;
    const response = await fetch('/v1/events?topics=all', {headers, cache: 'no-store', credentials: 'omit', signal: this.abort.signal});
    if (response.status === 401) return 'signed-out';
    if (!response.ok) return (Number(response.headers.get('Retry-After')) || 5) * 1000;
    heard();
    this.attempt = 0;
    this.loadActivity();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    try {
      for (;;) {
        const {value, done} = await reader.read();
        if (done) return null;
        heard();
        const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
        rest = blocks.pop();
        const events = blocks.map((block) => this.decode(block)).filter(Boolean);
        if (events.length) this.apply(events);
        this.setConnection('live');
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  decode(block) {
    let [name, data] = ['message', ''];
    for (const line of block.split('\n')) {
      const at = line.indexOf(':');
      if (at < 1) continue;
      const value = line.slice(at + (line[at + 1] === ' ' ? 2 : 1));
      const field = line.slice(0, at);
      if (field === 'event') name = value;
      else if (field === 'id') this.lastID = value;
      else if (field === 'data') data += data ? `\n${value}` : value;
    }
    if (!data) return null;
    try {
      return [name, JSON.parse(data)];
    } catch {
      return null;
    }
  }

  apply(events) {
    for (const [name, data] of events) {
      if (name === 'snapshot') {
        this.endpoints = new Map(data.endpoints.map((endpoint) => [endpoint.id, endpoint]));
        this.loaded = true;
      } else if (name === 'endpoint') {
        if (data.kind === 'removed') this.endpoints.delete(data.endpoint.id);
        else this.endpoints.set(data.endpoint.id, data.endpoint);
      } else if (name === 'activity') this.keepActivity([data]);
      else if (TOPICS.includes(name)) this.whole[name] = data;
    }
    this.post({events});
  }

  keepActivity(entries) {
    for (const entry of entries) this.activity.set(entry.id, entry);
    for (const id of this.activity.keys()) {
      if (this.activity.size <= ACTIVITY_LIMIT) break;
      this.activity.delete(id);
    }
  }

  // The stream has changes only. After a break, entries that had not ended are asked for again.
  async loadActivity() {
    const running = [...this.activity.values()].find((entry) => entry.outcome === 'running' || entry.outcome === 'waiting');
    const after = (running?.id ?? (Math.max(-1, ...this.activity.keys()) + 1)) - 1;
    try {
      const response = await fetch(`/v1/activity?limit=${ACTIVITY_LIMIT}${after >= 0 ? `&after=${after}` : ''}`,
        {headers: {Authorization: `Bearer ${this.token}`}, cache: 'no-store', credentials: 'omit', signal: this.abort.signal});
      if (!response.ok) return;
      const answer = await response.json();
      // A restarted broker counts from 1 again.
      if (answer.newest < Math.max(0, ...this.activity.keys())) this.activity.clear();
      this.keepActivity(answer.entries);
      this.activity = new Map([...this.activity].sort(([a], [b]) => a - b));
      this.post({events: [['activity-list', [...this.activity.values()]]]});
    } catch {
      // The next connection asks again.
    }
  }
}

/** The sessions of all tabs: a tab without a session gets the newest one. */
export class Sessions {
  streams = new Map();
  waiting = new Set();

  /** Adds a tab and returns the function that takes its messages. */
  connect(post) {
    let own = null;
    const leave = () => {
      this.waiting.delete(post);
      if (own?.remove(post)) {
        own.end();
        if (this.streams.get(own.token) === own) this.streams.delete(own.token);
      }
      own = null;
    };
    return (message) => {
      if (message.hello) {
        const token = [...this.streams].filter(([, stream]) => !stream.ended).pop()?.[0] ?? null;
        if (!token) this.waiting.add(post);
        post({session: token});
      } else if (message.session) {
        leave();
        const known = this.streams.get(message.session);
        if (!known || known.ended) this.streams.set(message.session, new Stream(message.session));
        own = this.streams.get(message.session);
        own.add(post);
        for (const other of this.waiting) other({session: message.session});
        this.waiting.clear();
      } else if (message.signedOut) {
        const stream = own;
        leave();
        if (stream) {
          stream.setConnection('signed-out');
          stream.end();
          this.streams.delete(stream.token);
        }
      } else if (message.retry) own?.retryNow();
      else if (message.bye) leave();
    };
  }
}

if (typeof SharedWorkerGlobalScope !== 'undefined') {
  const sessions = new Sessions();
  self.onconnect = (event) => {
    const [port] = event.ports;
    const receive = sessions.connect((message) => port.postMessage(message));
    port.onmessage = ({data}) => receive(data);
  };
}
