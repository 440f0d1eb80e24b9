// The consent of OAuth: asks the owners for what a client wants, shows the code, and waits. Only an owner's answer leads on.
import {fill, foreign, h} from './dom.js';

const INTERVAL = 2000;
const SCOPES = {'registry.read': 'see the apps and phones', 'endpoint.call': 'call the tools of apps',
  'secret.use': 'use the session tokens of apps, without seeing them', 'tunnel.open': 'open tunnels to apps'};
const main = document.getElementById('main');
const show = (title, ...content) => fill(main, h('section.sign-in', h('h1', title), ...content));

async function post(path, body) {
  const response = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body), cache: 'no-store', credentials: 'omit'});
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? answer.error_description ?? `status ${response.status}`);
  return answer;
}

const again = () => h('button.primary', {onclick: () => location.reload()}, 'Ask again');
const row = (label, ...value) => [h('dt', label), h('dd', ...value)];

function showRequest({request}) {
  const {authorization, permissions, userCode} = request;
  const {origin, host} = authorization;
  const isLocal = !/^https:/.test(origin);
  show('A client asks for access', h('p', 'An owner of this broker has to approve it. This page cannot.'),
    h('p', h('code.v-user-code', userCode)),
    h('p', 'In the dashboard compare the code, or type ', h('code', `patchbay requests approve ${userCode}`), ' on the machine of the broker.'),
    h('dl.consent', row('It calls itself', foreign(request.name)),
      host ? row('Its ID is of', foreign(host, 300), isLocal ? ', which proves nothing about a program on this machine' : '') : null,
      row('The answer goes to', foreign(origin), isLocal ? ', a program on the machine of this browser' : ''),
      row('It wants to', h('ul', permissions.scopes.map((scope) => h('li', SCOPES[scope] ?? foreign(scope))))),
      row('At', foreign(authorization.resource))),
    h('p.dim', 'Approve it only if you have just asked this client to connect. Its name proves nothing.'));
}

async function run() {
  let asked;
  try { asked = await post('requests', {query: location.search}); } catch (error) {
    return show('This request is not possible', h('p', foreign(error.message, 600)), h('p', 'Nobody was asked. Close this page, and connect again in the client.'));
  }
  showRequest(asked);
  while (true) {
    await new Promise((done) => setTimeout(done, INTERVAL));
    let answer;
    // The broker restarts, or the machine slept.
    try { answer = await post('requests/answer', {secret: asked.secret}); } catch { continue; }
    if (answer.state === 'expired') return show('Nobody has answered', h('p', 'The request has ended.'), again());
    if (answer.state !== 'answered') continue;
    show('An owner has answered', h('p', 'The client goes on. You can close this page.'));
    return location.replace(answer.location);
  }
}

if (window.top === window) run();
