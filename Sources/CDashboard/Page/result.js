// Shows what a tool returned: texts, JSON, pictures, links and files. Everything in it is foreign.
import {bytes, copyButton, foreign, h, printable, safeLink} from './dom.js';
import {api} from './session.js';
import {asList, isObject} from './schema.js';

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;
const COLOURED = 60000;
const LONGEST = 400000;

/** Builds a block of JSON or text, with colours if it is short, and a copy button. */
export function codeBlock(value, {label = 'Text', limit = LONGEST} = {}) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
  let shown = text;
  if (typeof value === 'string' && /^\s*[[{]/.test(text) && text.length < LONGEST) {
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* It is text that begins like JSON. */ }
  }
  const isJSON = typeof value !== 'string' || shown !== text || /^\s*[[{]/.test(text);
  const cut = shown.length > limit;
  const block = h('pre.v-block', {tabindex: '0', 'aria-label': label});
  if (isJSON && shown.length < COLOURED) block.append(...coloured(shown));
  else block.append(printable(shown, limit));
  return h('div.v-block-frame', block, copyButton(text, `Copy: ${label}`),
    cut && h('p.v-hint', `The first ${limit} of ${shown.length} characters. The copy has all.`));
}

function coloured(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(printable(text.slice(end, match.index), COLOURED));
    const [whole, quoted, colon, number] = match;
    const kind = quoted ? (colon ? 'key' : 'string') : number ? 'number' : 'word';
    parts.push(h('span', {class: `j-${kind}`}, printable(quoted ?? whole, COLOURED)), colon ?? '');
    end = match.index + whole.length;
  }
  parts.push(printable(text.slice(end), COLOURED));
  return parts;
}

/** Builds the result of a call: `{element, release}`. `release` frees the pictures. */
export function resultView(result) {
  const urls = [];
  const content = asList(result?.content).map(part => contentView(isObject(part) ? part : {}, urls));
  const structured = result?.structuredContent;
  // A server repeats structured content as text, and one of them is enough.
  const repeated = structured !== undefined && asList(result.content).some(part => sameJSON(part?.text, structured));
  if (structured !== undefined && !repeated) content.push(codeBlock(structured, {label: 'Structured result'}));
  const element = h('div.v-result', {class: result?.isError && 'is-error'},
    result?.isError && h('p.v-result-error', 'The tool reports an error.'),
    content.length ? content : h('p.v-hint', 'The result is empty.'));
  return {element, release: () => urls.forEach(url => URL.revokeObjectURL(url))};
}

function sameJSON(text, value) {
  try { return JSON.stringify(JSON.parse(text)) === JSON.stringify(value); } catch { return false; }
}

function contentView(part, urls) {
  if (part.type === 'text') return codeBlock(String(part.text ?? ''), {label: 'Result'});
  if (part.type === 'image') return pictureView(part, urls);
  if (part.type === 'audio') return fileView('Sound', part.mimeType, part.data, 'sound');
  if (part.type === 'resource_link') return linkView(part);
  if (part.type === 'resource' && isObject(part.resource)) {
    const {uri, text, blob, mimeType} = part.resource;
    return h('div', h('p', foreign(uri)),
      typeof text === 'string' ? codeBlock(text, {label: 'Resource'}) : PICTURES.includes(mimeType) ? pictureView({data: blob, mimeType}, urls) : fileView('Resource', mimeType, blob, 'resource'));
  }
  return codeBlock(part, {label: 'Content'});
}

/** Decodes base64; null if it is none. */
export function decode(data) {
  try { return Uint8Array.from(atob(data), c => c.charCodeAt(0)); } catch { return null; }
}

function pictureView({data, mimeType}, urls) {
  const content = PICTURES.includes(mimeType) ? decode(data) : null;
  if (!content) return h('p.v-hint', 'A picture of the type ', foreign(mimeType), ', which this page does not show.');
  const url = URL.createObjectURL(new Blob([content], {type: mimeType}));
  urls.push(url);
  const caption = h('figcaption', bytes(content.length));
  const image = h('img', {src: url, alt: 'Picture from the tool', onload: () => { caption.textContent = `${image.naturalWidth} × ${image.naturalHeight}, ${bytes(content.length)}`; }});
  return h('figure.v-picture', image, h('div.v-row', caption, saveButton(() => new Blob([content], {type: mimeType}), `picture.${mimeType.slice(6)}`)));
}

function fileView(what, type, data, name) {
  const content = decode(data ?? '');
  return h('p.v-row', `${what}, `, foreign(type ?? 'unknown type'), content && `, ${bytes(content.length)}`,
    content && saveButton(() => new Blob([content]), name));
}

function linkView({uri, name, description}) {
  const stored = /^patchbay:\/\/artifact\/([0-9a-f]{16,128})$/.exec(uri ?? '');
  const web = /^https?:\/\//i.test(uri ?? '') && safeLink(uri);
  return h('div.v-row', web ? h('a', {href: uri, rel: 'noopener noreferrer', target: '_blank'}, foreign(name ?? uri)) : foreign(name ?? uri),
    description && h('span.v-hint', foreign(description)), !web && !stored && h('code', foreign(uri)),
    stored && saveButton(async () => (await api('GET', `/v1/artifacts/${stored[1]}`, undefined, {raw: true})).blob(), name ?? 'artifact'));
}

/** Builds a button that saves a file on this machine. */
function saveButton(content, name) {
  return h('button.v-quiet', {onclick: async ({currentTarget}) => {
    currentTarget.disabled = true;
    try {
      const url = URL.createObjectURL(await content());
      const link = document.createElement('a');
      link.href = url;
      link.download = String(name).replace(/[^\w.-]+/g, '-').slice(-80);
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    } catch (error) {
      currentTarget.after(h('span.v-error', {role: 'alert'}, String(error.message)));
    }
    currentTarget.disabled = false;
  }}, 'Save');
}
