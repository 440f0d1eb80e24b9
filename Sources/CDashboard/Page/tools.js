// The tools of an app: a list, a form made from the schema of the chosen tool, and its result.
import {duration, fill, foreign, h, setText} from './dom.js';
import {api, path} from './session.js';
import {asList, isObject} from './schema.js';
import {schemaForm} from './toolform.js';
import {resultView} from './result.js';
import {emptyView, isTyping, problemView} from './parts.js';

// The last arguments of a tool, so that a person may repeat a call after looking elsewhere.
const lastArguments = new Map();
let lastTool = null;

/** Fills the form of a tool the next time that it is shown. */
export function rememberArguments(id, tool, value) {
  lastArguments.set(`${id} ${tool}`, value ?? {});
  lastTool = `${id} ${tool}`;
}

/** Shows the tools of an app. Returns the cleanup. */
export function mountTools(root, id) {
  const loading = new AbortController();
  let tools = [];
  let chosen = null;
  let open = null;
  const search = h('input', {type: 'search', dataset: {search: ''}, placeholder: 'Find a tool', 'aria-label': 'Find a tool', autocomplete: 'off', oninput: showList, onkeydown: step});
  const listing = h('ul.v-tool-list', {'aria-label': 'Tools', onkeydown: step});
  const limit = h('p.v-hint');
  const side = h('div.v-tool-side', search, listing, limit);
  const pane = h('div.v-tool-pane');
  const frame = h('div.v-split', side, pane);

  async function refresh() {
    try {
      const answer = await api('GET', path('endpoints', id, 'tools'), undefined, {signal: loading.signal});
      tools = asList(answer.tools).filter(tool => isObject(tool) && typeof tool.name === 'string');
      setText(limit, [answer.limit && `Your grant allows ${answer.limit}.`, answer.stale && `The list is from earlier. ${answer.reason ?? ''}`, answer.changed && 'The list changed since the last launch.'].filter(Boolean).join(' '));
      if (!tools.length) return fill(root, emptyView('No tools', answer.reason ?? 'This app offers no tools.', answer.hint ? ` ${answer.hint}` : ''));
      if (!frame.isConnected) fill(root, frame);
      showList();
      const again = tools.find(tool => tool.name === chosen?.name);
      if (!again) choose(tools.find(tool => `${id} ${tool.name}` === lastTool) ?? tools[0]);
    } catch (error) {
      if (error.name !== 'AbortError') fill(root, problemView(error, refresh));
    }
  }

  function showList() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = tools.filter(tool => words.every(word => `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''}`.toLowerCase().includes(word)));
    fill(listing, found.map(tool => h('li', h('button.v-tool', {dataset: {name: tool.name}, onclick: () => choose(tool)},
      foreign(tool.name, 300, 'v-tool-name'), effectOf(tool) === 'read-only' && h('span.v-tag', {title: 'This tool changes nothing.'}, 'read-only'),
      h('span.v-tool-text.cut', foreign(tool.title ?? tool.description ?? '', 120))))), !found.length && h('li.v-hint', 'No tool has this name.'));
    mark();
  }
  function mark() {
    for (const item of listing.querySelectorAll('.v-tool')) item.ariaCurrent = item.dataset.name === chosen?.name ? 'true' : null;
  }

  function step(event) {
    const move = {ArrowDown: 1, ArrowUp: -1}[event.key] ?? (isTyping(event) ? 0 : {j: 1, k: -1}[event.key] ?? 0);
    if (!move) return;
    const buttons = [...listing.querySelectorAll('button')];
    const next = buttons[buttons.indexOf(document.activeElement) + move];
    if (next) next.focus(); else if (move < 0) search.focus();
    event.preventDefault();
  }

  function choose(tool) {
    open?.close();
    chosen = tool;
    lastTool = `${id} ${tool.name}`;
    mark();
    open = toolPane(id, tool);
    fill(pane, open.element);
  }

  fill(root, h('p.v-hint', {role: 'status'}, 'Reading the tools of the app…'));
  refresh();
  return () => { loading.abort(); open?.close(); };
}

const effectOf = ({annotations}) => annotations?.readOnlyHint ? 'read-only' : annotations?.destructiveHint ? 'destructive' : null;

function toolPane(id, tool) {
  const key = `${id} ${tool.name}`;
  const form = schemaForm(tool.inputSchema);
  if (lastArguments.has(key)) form.write(lastArguments.get(key));
  const timeout = h('input.v-short', {type: 'number', min: '1', max: '120', value: '30', 'aria-label': 'Timeout in seconds', });
  const call = h('button.primary', {type: 'submit', }, 'Call');
  const cancel = h('button', {hidden: true, onclick: () => running?.abort()}, 'Cancel');
  const status = h('span.v-hint', {role: 'status'});
  const output = h('div.v-output');
  let running = null;
  let shown = null;

  async function submit(event) {
    event.preventDefault();
    if (running) return;
    const {value, errors} = form.read();
    if (errors) return setText(status, `${errors.length === 1 ? 'One field needs' : `${errors.length} fields need`} a correction.`);
    lastArguments.set(key, value);
    running = new AbortController();
    call.disabled = true;
    cancel.hidden = false;
    setText(status, 'The call runs…');
    const start = performance.now();
    const taken = () => duration(performance.now() - start);
    try {
      const answer = await api('POST', path('endpoints', id, 'call'),
        {tool: tool.name, arguments: value, timeoutSeconds: Math.min(120, Math.max(1, Math.round(Number(timeout.value)) || 30))}, {signal: running.signal});
      shown?.release();
      shown = resultView(answer.result);
      fill(output, shown.element);
      setText(status, answer.result?.isError ? `The tool failed after ${taken()}.` : `Answered in ${taken()}.`);
    } catch (error) {
      shown?.release();
      shown = null;
      if (error.name === 'AbortError') { fill(output); setText(status, `Cancelled after ${taken()}.`); }
      else { fill(output, problemView(error)); setText(status, `Failed after ${taken()}.`); }
    }
    running = null;
    call.disabled = false;
    cancel.hidden = true;
  }

  const effect = effectOf(tool);
  const element = h('form', {onsubmit: submit, onkeydown: event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event); }},
    h('header.v-tool-head', h('h2', foreign(tool.name)), effect && h('span.v-tag', {class: effect === 'destructive' && 'is-strong'}, effect)),
    tool.description && h('p.v-tool-description', foreign(tool.description, 4000)),
    form.element,
    h('div.v-row.v-call-row', call, cancel, h('label.v-inline', 'Timeout ', timeout, ' s'), status),
    output);
  element.noValidate = true;
  return {element, close() { running?.abort(); shown?.release(); }};
}
