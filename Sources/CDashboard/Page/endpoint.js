// One app: its state, routes, identity, approval and token; its live screen, tools, states and activity.
import {fill, foreign, h, icon, setForeign, setState, setTime, stateBadge, time} from './dom.js';
import {api, may, path} from './session.js';
import {leaseOf, store, subscribe, titleOf} from './store.js';
import {actButton, dangerButton, emptyView, isTyping} from './parts.js';
import {approvalCard, identityCard, routesCard, tokenCard, txtCard} from './endpoint-cards.js';
import {mountScreen} from './screen.js';
import {mountTools} from './tools.js';
import {hasStates, mountStates} from './states.js';
import {mountActivity} from './activity.js';
import {connectCard, noTools} from './connect.js';
import {pagesCard} from './pages.js';
import {tunnelDialog} from './tunnels.js';
import {leaseDialog} from './leases.js';

export const title = 'App';

const TABS = [['overview', 'Overview'], ['tools', 'Tools'], ['states', 'States'], ['activity', 'Activity']];
// What changes all the time, and is shown by the head alone.
const cardKey = endpoint => JSON.stringify({...endpoint, lastSeenAt: null, lease: null});

export function render(root, params, ctx) {
  const id = params.id;
  let endpoint = null;
  let tab = null;
  let endTab = null;
  let endScreen = null;
  let screenKey = '';
  let cards = [];
  let key = '';

  const badge = stateBadge('offline');
  const heading = h('h1', {tabindex: '-1'});
  const facts = h('p.v-facts');
  const reason = h('p.v-reason');
  const lease = h('span.v-lease-chip');
  const actions = h('div.v-actions');
  const tabs = h('div.v-tabs', {role: 'tablist', 'aria-label': 'Parts of the app', onkeydown: stepTab});
  const panel = h('div', {role: 'tabpanel', tabindex: '-1'});
  const screen = h('aside.v-aside', {'aria-label': 'Live screen'});
  const head = h('header.v-head', h('div.v-head-main', h('div.v-row', heading, badge, lease), facts, reason), actions);
  const frame = h('div.v-endpoint', h('div.v-main', head, tabs, panel), screen);
  const seen = time(null, {relative: true});

  function find() {
    const direct = store.endpoints.get(id);
    if (direct) return direct;
    // An ID stays valid after its endpoint joined another one.
    for (const one of store.endpoints.values()) {
      if (one.formerIDs?.includes(id) || one.combinedWith?.some(other => other.id === id)) return one;
    }
    return null;
  }

  function show() {
    const next = find();
    if (!next) {
      if (endpoint) close();
      endpoint = null;
      return fill(root, store.loaded
        ? emptyView('This app is not listed', 'No app has the ID ', foreign(id), '. It may have been removed, or your grant does not include it. ', id.includes('.') && ['Or the broker of the host ', foreign(id.split('.').at(-1)), ' is away. '], h('a', {href: '#/'}, 'Back to the bench'))
        : h('p.v-hint', {role: 'status'}, 'Loading…'));
    }
    if (next.id !== endpoint?.id) {
      close();
      endpoint = next;
      fill(root, frame);
      showHead();
      openTab(wantedTab());
    } else if (next !== endpoint) {
      endpoint = next;
      showHead();
    } else {
      showLease();
    }
  }

  function showHead() {
    setForeign(heading, titleOf(endpoint));
    ctx.setTitle?.(titleOf(endpoint));
    setState(badge, endpoint.state);
    setTime(seen, endpoint.lastSeenAt);
    const {udid, deviceName, host} = endpoint.location ?? {};
    const device = udid && store.devices.get(udid);
    fill(facts,
      h('span', foreign(endpoint.kind)), endpoint.version && h('span', 'version ', foreign(endpoint.version)),
      udid ? h('a', {href: `#/d/${encodeURIComponent(udid)}`}, icon('phone'), foreign(device?.label || deviceName || udid)) : host && h('span', icon('machine'), foreign(host)),
      endpoint.host?.name && h('span', icon('host'), foreign(endpoint.host.name)),
      endpoint.state !== 'online' && endpoint.lastSeenAt && h('span', 'last seen ', seen),
      h('code', foreign(endpoint.id)));
    const next = cardKey(endpoint);
    setForeign(reason, endpoint.reason ?? '', 500);
    if (next === key) return showLease();
    key = next;
    fill(actions, actionsOf(endpoint));
    cards.forEach(card => card.update(endpoint));
    showScreen();
    showTabs();
    showLease();
  }

  // An approval or a token makes the screen possible, so it starts again with each.
  function showScreen() {
    const hasScreen = !hasStates(endpoint) && !noTools(endpoint);
    const isPossible = endpoint.approval === 'approved' && hasScreen;
    const next = `${isPossible} ${(endpoint.routes ?? []).some(route => route.secretHeld)}`;
    if (next === screenKey) return;
    screenKey = next;
    endScreen?.();
    endScreen = isPossible ? mountScreen(screen, endpoint.id) : null;
    if (!isPossible) fill(screen, hasScreen && h('p.v-hint.v-no-screen', 'The live screen starts when an owner approves the app.'));
  }

  function showLease() {
    const held = leaseOf(endpoint);
    const text = held ? `${held.id} ${held.expiresAt} ${held.own}` : '';
    if (lease.dataset.key === text) return;
    lease.dataset.key = text;
    fill(lease, held && [icon('lock'), held.own ? 'your lease' : foreign(held.holder), held.expiresAt && [' · ', time(held.expiresAt, {left: true})]]);
  }

  function actionsOf({id: own, state, sources, approval, hostRoutes}) {
    return [
      may('tunnel.open') && state !== 'blocked' && !hasStates(endpoint) && h('button', {onclick: () => tunnelDialog(own)}, 'Tunnel…'),
      may('endpoint.call') && state !== 'blocked' && h('button', {onclick: () => leaseDialog(own)}, 'Lease…'),
      may('registry.read') && state !== 'blocked' && approval === 'approved' && actButton('Check now', () => api('POST', path('endpoints', own, 'probe')), 'The app was checked.'),
      may('admin') && !hostRoutes && (state === 'offline' || (sources ?? []).includes('config')) && dangerButton('Remove', () => ({title: 'Remove this app?',
        text: `${titleOf(endpoint)} leaves the list. Its approval and its token are deleted, and its tunnels end. It returns when it is seen again.`, action: 'Remove'}),
      async () => { await api('DELETE', path('endpoints', own)); ctx.navigate('#/'); }),
    ];
  }

  // MARK: Tabs

  const available = () => TABS.filter(([name]) => (name !== 'states' || hasStates(endpoint)) && (name !== 'tools' || !noTools(endpoint)));
  function wantedTab() {
    const wanted = params.query.get('tab');
    return available().some(([name]) => name === wanted) ? wanted : hasStates(endpoint) ? 'states' : 'overview';
  }
  function showTabs() {
    const names = available().map(([name]) => name).join();
    if (tabs.dataset.names === names) return;
    tabs.dataset.names = names;
    fill(tabs, available().map(([name, text]) => h('button.v-tab', {role: 'tab', id: `tab-${name}`, dataset: {name}, onclick: () => openTab(name, true)}, text)));
    markTab();
  }
  function markTab() {
    for (const button of tabs.children) {
      const isOpen = button.dataset.name === tab;
      button.setAttribute('aria-selected', String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
    }
    panel.setAttribute('aria-labelledby', `tab-${tab}`);
  }
  function stepTab(event) {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    const all = [...tabs.children];
    const next = all[(all.findIndex(button => button.dataset.name === tab) + move + all.length) % all.length];
    openTab(next.dataset.name, true);
    next.focus();
    event.preventDefault();
  }
  function openTab(name, isChosen) {
    if (name === tab) return;
    endTab?.();
    endTab = null;
    cards = [];
    tab = name;
    markTab();
    // The address names the tab, and "back" still leads to the view before.
    if (isChosen) ctx.setQuery({tab: name});
    fill(panel);
    if (name === 'tools') endTab = mountTools(panel, endpoint.id);
    else if (name === 'states') endTab = mountStates(panel, endpoint.id);
    else if (name === 'activity') endTab = mountActivity(panel, {endpoint: endpoint.id, host: endpoint.hostRoutes && endpoint.host?.name}, ctx);
    else {
      const pages = pagesCard(endpoint);
      cards = [approvalCard(), pages, routesCard(), tokenCard(), identityCard(), txtCard()];
      cards.forEach(card => card.update(endpoint));
      const events = eventsCard();
      endTab = () => { events.cleanup(); pages.cleanup(); };
      fill(panel, h('div.v-cards', cards.map(card => card.element), connectCard({endpoint}), events.element));
    }
  }

  // The changes of state that the broker still holds.
  function eventsCard() {
    const body = h('ol.v-events');
    const update = () => {
      const changes = store.activity.filter(entry => entry.kind === 'change' && entry.endpoint === endpoint.id).slice(-20).reverse();
      fill(body, changes.map(entry => h('li', time(entry.at), h('span', stateBadge(entry.state ?? 'unknown', {label: false}), foreign(entry.text)))),
        h('li', time(endpoint.firstSeenAt), h('span', 'first seen')));
    };
    update();
    const end = subscribe('activity', update);
    return {element: h('section.card', h('h2', 'Events'), body), cleanup: end};
  }

  function close() {
    endTab?.();
    endScreen?.();
    [endTab, endScreen, screenKey, tab, key, cards] = [null, null, '', null, '', []];
    delete tabs.dataset.names;
  }

  const onKey = event => {
    if (isTyping(event) || !endpoint) return;
    const name = available()[Number(event.key) - 1]?.[0];
    if (name) openTab(name, true);
  };
  document.addEventListener('keydown', onKey);
  const unsubscribe = subscribe(['endpoints', 'leases', 'devices'], show);
  show();
  return () => { unsubscribe(); document.removeEventListener('keydown', onKey); close(); };
}
