// One entry of the activity: who called what, with the pictures of the app before and after.
import {bytes, clockText, duration, fill, foreign, h, icon, stateBadge, time} from './dom.js';
import {api} from './session.js';
import {store, titleOf} from './store.js';
import {phoneLink} from './parts.js';
import {codeBlock} from './result.js';
import {endpointLink} from './rows.js';
import {rememberArguments} from './tools.js';

/** Returns whether a call has not ended. */
export const isOpen = ({outcome}) => outcome === 'waiting' || outcome === 'running';

const LIMIT = 60;
const pictures = new Map();

/** Returns the object URL of the picture of an entry. The newest 60 are kept. */
export function pictureOf(id, width) {
  const key = `${id} ${width}`;
  const known = pictures.get(key);
  if (known) return known;
  const loading = api('GET', `/v1/activity/${id}/picture?width=${width}`, undefined, {raw: true}).then(response => response.blob()).then(blob => URL.createObjectURL(blob));
  loading.catch(() => pictures.delete(key));
  pictures.set(key, loading);
  if (pictures.size > LIMIT) {
    const [oldest, gone] = pictures.entries().next().value;
    pictures.delete(oldest);
    gone.then(url => setTimeout(() => URL.revokeObjectURL(url), 60000), () => {});
  }
  return loading;
}

/** The entries with the pictures before and after an entry, at the same app. */
function picturesAround(entry, all) {
  const at = all.findIndex(one => one.id === entry.id);
  const shows = one => one.kind === 'call' && one.endpoint === entry.endpoint && one.picture;
  const before = all.slice(0, Math.max(0, at)).findLast(shows);
  const after = shows(entry) ? entry : all.slice(at + 1).find(shows);
  return {before, after};
}

export function detailView(entry, {onStep, onClose, onChoose}) {
  let isReleased = false;
  const step = (move, text, key) => h('button.icon-button', {'aria-label': `${text} (${key})`, title: `${text} (${key})`, onclick: () => onStep(move)}, move < 0 ? '↑' : '↓');
  const isCall = entry.kind === 'call';
  const endpoint = store.endpoints.get(entry.endpoint);
  const appLink = entry.endpoint && h('a', {href: endpointLink(entry.endpoint)}, foreign(endpoint ? titleOf(endpoint) : entry.app || entry.endpoint));
  const element = h('article.v-detail-body', {'aria-label': 'Details'},
    h('header.v-detail-head', h('h2', foreign(isCall ? entry.tool : entry.text)), isCall ? stateBadge(entry.outcome) : stateBadge(entry.state ?? 'unknown'),
      h('div.v-actions', step(-1, 'Previous', 'k'), step(1, 'Next', 'j'), h('button.icon-button', {'aria-label': 'Close (Esc)', onclick: onClose}, icon('cross')))),
    h('dl.v-pairs',
      pair('App', appLink), isCall && pair('Client', clientView(entry.client)), pair('At', h('span', clockText(entry.at), h('span.v-hint', `.${String(new Date(entry.at).getMilliseconds()).padStart(3, '0')}`))),
      isCall && entry.waitMilliseconds > 0 && pair('Waited', duration(entry.waitMilliseconds)),
      isCall && pair('Took', isOpen(entry) ? `still ${entry.outcome}` : duration(entry.durationMilliseconds)),
      entry.device && pair('Phone', phoneLink({udid: entry.device})), entry.trace && pair('Trace', h('code', foreign(entry.trace)))));

  const {before, after} = picturesAround(entry, store.activity);
  if (before || after) element.append(h('div.v-pair', picture(before, 'Before'), picture(after, 'After')));
  if (isCall) {
    const hasArguments = entry.arguments && Object.keys(entry.arguments).length > 0;
    element.append(part('Arguments', hasArguments ? codeBlock(entry.arguments, {label: 'Arguments'}) : h('p.v-hint', 'None.'),
      endpoint && h('a.v-quiet', {href: `${endpointLink(entry.endpoint)}?tab=tools`, onclick: () => rememberArguments(entry.endpoint, entry.tool, entry.arguments)}, 'Open in the form')));
    if (entry.result) element.append(part(entry.outcome === 'error' ? 'Error' : 'Result', entry.result.text ? codeBlock(entry.result.text, {label: 'Result'}) : h('p.v-hint', 'No text.'),
      entry.result.bytes !== undefined && h('span.v-hint', bytes(entry.result.bytes))));
  }

  function picture(other, label) {
    const frame = h('div.v-picture-frame', other ? '' : h('span.v-hint', 'No picture'));
    if (other) {
      pictureOf(other.id, Math.ceil(360 * devicePixelRatio / 120) * 120).then(url => { if (!isReleased) fill(frame, h('img', {src: url, alt: `${label}: the screen of the app`, width: other.picture.width, height: other.picture.height})); },
        error => { if (!isReleased) fill(frame, h('span.v-hint', error.message)); });
    }
    const isOwn = other?.id === entry.id;
    return h('figure.v-picture', frame, h('figcaption', label, other && [' · ', isOwn ? 'this call' : h('button.v-link', {onclick: () => onChoose(other.id)}, foreign(other.tool)), ' · ', time(other.at)]));
  }
  return {element, entry, release: () => { isReleased = true; }};
}

const pair = (term, value) => h('div', h('dt', term), h('dd', value));
const part = (heading, content, extra) => h('section.v-detail-part', h('header.v-row', h('h3', heading), extra), content);

function clientView(client) {
  const kind = {user: 'on this machine', grant: 'grant', host: 'host of the team'}[client?.kind] ?? '';
  return h('span', foreign(client?.name ?? 'unknown'), kind && h('span.v-sub', kind, client?.grant && [' ', h('a', {href: '#/access'}, foreign(client.grant))], client?.agent && [', ', foreign(client.agent)]));
}
