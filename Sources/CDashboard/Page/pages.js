// The pages of a DevTools server, asked for again while a person looks at the card.
import {codeLine, fill, foreign, h, list, printable, setText} from './dom.js';
import {api, may, path} from './session.js';

const INTERVAL = 2000;

// A page keeps its element, and so the focus on its button. Without a tunnel to a phone it has no URL.
const row = ({page}) => h('li', foreign(page.title || 'no title'), h('span.v-tag', foreign(page.type || 'page', 40)), h('span.v-sub', foreign(page.url, 500)),
  page.webSocketDebuggerUrl && codeLine(page.webSocketDebuggerUrl, `Copy the DevTools URL of ${printable(page.title, 60)}`));

/** Builds the card of an app of kind `web`, with `update` and `cleanup`. */
export function pagesCard({id, kind}) {
  const items = h('ul.v-list');
  const hint = h('p.v-hint', {role: 'status'}, 'Loading…');
  const address = h('div');
  const element = h('section.card', {hidden: kind !== 'web' || !may('endpoint.call')}, h('h2', 'Pages'), h('div.v-card-body', address, items, hint));
  const ending = new AbortController();
  let [isSeen, isLoading, timer, shown] = [false, false, 0, ''];

  async function load() {
    clearTimeout(timer);
    if (!isSeen || isLoading || document.hidden || ending.signal.aborted) return;
    isLoading = true;
    try {
      show(await api('GET', path('endpoints', id, 'pages'), undefined, {signal: ending.signal}));
    } catch (error) {
      if (!ending.signal.aborted) show({pages: []}, printable(`${error.message}. ${error.hint ?? ''}`));
    }
    isLoading = false;
    timer = setTimeout(load, INTERVAL);
  }
  function show({http, pages, omittedCount}, problem) {
    list(items, pages.map((page, at) => ({page, text: JSON.stringify(page), key: page.webSocketDebuggerUrl ?? at})), ({key}) => key, row,
      (element, item, before) => { if (item.text !== before.text) element.replaceChildren(...row(item).childNodes); });
    setText(hint, problem ?? (!pages.length ? 'No page is open.' : omittedCount ? `${omittedCount} more are not shown.`
      : http ? 'A second debugger may end the first.' : 'A tunnel gives each page an address for a debugger.'));
    if (shown !== http) fill(address, http && codeLine(http, 'Copy the address for connect_over_cdp'));
    shown = http;
  }
  const observer = new IntersectionObserver(([{isIntersecting}]) => { isSeen = isIntersecting; load(); });
  observer.observe(element);
  document.addEventListener('visibilitychange', load, {signal: ending.signal});
  return {element, update: load, cleanup() { ending.abort(); clearTimeout(timer); observer.disconnect(); }};
}
