// The strip above the activity: every entry on one time axis, in a lane for each app. Dragging selects a time span.
import {h} from './dom.js';

const HEIGHT = 44;
const COLOURS = {ok: '--v-ok', error: '--v-error', refused: '--v-refused', running: '--v-running', waiting: '--v-refused', cancelled: '--v-idle', unknown: '--v-idle'};

export function mountOverview({onSelect}) {
  const canvas = h('canvas.v-overview', {'aria-hidden': 'true', title: 'Drag to select a time span, double-click for all'});
  const reset = h('button.v-quiet.v-overview-reset', {hidden: true, onclick: () => onSelect(null, null)}, 'Show all times');
  const element = h('div.v-overview-frame', canvas, reset);
  let last = null;
  let axis = [0, 1];
  let drag = null;
  let colours = {};

  // A canvas does not know light-dark(), so the style of an element resolves it.
  function resolved(name) {
    canvas.style.setProperty('color', `var(${name})`);
    return getComputedStyle(canvas).color;
  }

  function draw(entries, from, to, isLimited) {
    last = [entries, from, to, isLimited];
    reset.hidden = !isLimited;
    const width = canvas.clientWidth;
    if (!width) return;
    const scale = devicePixelRatio;
    if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(HEIGHT * scale); }
    const context = canvas.getContext('2d');
    const colour = name => colours[name] ??= resolved(name);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    if (!entries.length) return;
    const first = Date.parse(entries[0].at);
    const end = Math.max(Date.parse(entries.at(-1).at), Date.now() - 60000, first + 1000);
    axis = [first, end];
    const x = at => (at - first) / (end - first) * (width - 4) + 2;
    const lanes = new Map();
    for (const {endpoint} of entries) if (!lanes.has(endpoint)) lanes.set(endpoint, lanes.size);
    const rows = Math.min(8, lanes.size);
    const height = Math.max(2, Math.min(8, (HEIGHT - 8) / rows - 2));
    for (const entry of entries) {
      const left = x(Date.parse(entry.at));
      const top = 4 + (lanes.get(entry.endpoint) % rows) * (HEIGHT - 8) / rows;
      context.fillStyle = colour(entry.kind === 'call' ? COLOURS[entry.outcome] ?? '--v-idle' : '--v-line');
      if (entry.kind === 'change') context.fillRect(left, 0, 1, HEIGHT);
      else context.fillRect(left, top, Math.max(2, x(Date.parse(entry.at) + (entry.waitMilliseconds ?? 0) + (entry.durationMilliseconds ?? 0)) - left), height);
    }
    const [a, b] = drag ? [Math.min(drag.x, drag.to), Math.max(drag.x, drag.to)] : isLimited ? [x(from), x(to)] : [0, 0];
    if (b > a) {
      context.fillStyle = colour('--v-shade');
      context.fillRect(0, 0, a, HEIGHT);
      context.fillRect(b, 0, width - b, HEIGHT);
    }
  }

  const redraw = () => { if (last) draw(...last); };
  const repaint = () => { colours = {}; redraw(); };
  canvas.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    drag = {x: event.offsetX, to: event.offsetX};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => { if (drag) { drag.to = event.offsetX; redraw(); } });
  canvas.addEventListener('pointerup', () => {
    if (!drag) return;
    const [a, b] = [Math.min(drag.x, drag.to), Math.max(drag.x, drag.to)];
    drag = null;
    if (b - a < 4) return redraw();
    const at = x => axis[0] + (x - 2) / (canvas.clientWidth - 4) * (axis[1] - axis[0]);
    onSelect(at(a), at(b));
  });
  canvas.addEventListener('dblclick', () => onSelect(null, null));
  const observer = new ResizeObserver(redraw);
  observer.observe(canvas);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', repaint);
  const theme = new MutationObserver(repaint);
  theme.observe(document.documentElement, {attributeFilter: ['data-theme']});
  return {element, draw, cleanup() { observer.disconnect(); theme.disconnect(); scheme.removeEventListener('change', repaint); }};
}
