// The agents of the bench in one line: who is connected, and which call runs.
import {foreign, h, icon, list, printable, setText, setTime, stateBadge, time} from './dom.js';
import {who} from './session.js';
import {store, subscribe} from './store.js';

function card(agent) {
  const element = h('li.agent', icon('agent'), foreign(agent.client?.name || agent.name, 60, 'agent-name cut'),
    h('span.agent-call.cut'), h('small', h('span'), ' · ', time(agent.lastCallAt, {relative: true})));
  element.title = printable(`${agent.name}${agent.client?.version ? `, version ${agent.client.version}` : ''}`, 200);
  update(element, agent);
  return element;
}

function update(element, agent) {
  const [call, more] = [agent.inFlight?.[0], (agent.inFlight?.length ?? 0) - 1];
  const key = call ? `${call.tool} ${call.startedAt}+${more}` : '';
  if (element.call !== key) {
    element.call = key;
    element.children[2].replaceChildren(...(call ? [stateBadge('running', {label: false}), h('span.mono', printable(call.tool, 60)),
      h('span.dim', ` ${printable(call.endpoint ?? '', 60)}${more > 0 ? ` +${more}` : ''}`)] : [h('span.dim', 'idle')]));
  }
  const [count, last] = [element.lastChild.firstChild, element.lastChild.lastChild];
  setText(count, `${agent.calls} ${agent.calls === 1 ? 'call' : 'calls'}`);
  setTime(last, agent.lastCallAt);
}

/** Shows the agents in a line of a fixed height. Returns its cleanup. */
export function mountAgents(root) {
  const items = h('ul.agent-list', {tabindex: '0', 'aria-label': 'Agents'});
  const none = h('span.dim', 'No agent is connected. The page of an app shows how to connect one.');
  const section = h('section.agents', {'aria-label': 'Agents and their calls'}, items, none);
  root.append(section);
  const show = () => {
    section.hidden = !who?.isOwner && store.agents.size === 0;
    none.hidden = store.agents.size > 0;
    items.hidden = store.agents.size === 0;
    list(items, [...store.agents.values()], (agent) => agent.id, card, update);
  };
  show();
  return subscribe('agents', show);
}
