// The problems that `patchbay doctor` finds, on top of the bench: one line, which opens to all of them.
import {codeLine, fill, foreign, h, icon, list, printable, stateBadge} from './dom.js';
import {who} from './session.js';
import {store, subscribe} from './store.js';

const ORDER = ['problem', 'warning', 'information'];
const KEY = 'patchbay.problems';
/** Returns the problems, the most severe first. */
export const sortedProblems = () => [...store.problems.values()].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));

function item(problem) {
  return h('li.problem', stateBadge(problem.severity, {label: false}),
    h('div.problem-text', h('p', h('strong', foreign(problem.subject, 80)), ' ', foreign(problem.text)),
      problem.hint && h('p.dim', foreign(problem.hint)), problem.command ? codeLine(problem.command, 'Copy the command') : null));
}

/** Shows the problems in an element of a fixed height, so that a new problem moves nothing. Returns its cleanup. */
export function mountProblems(root) {
  const summary = h('span.cut.grow');
  const badge = stateBadge('ok', {label: false});
  const toggle = h('button.quiet', {'aria-controls': 'problem-list'}, 'Show all', icon('chevron'));
  const items = h('ul.problem-list', {id: 'problem-list'});
  let isOpen = sessionStorage.getItem(KEY) === '1';
  toggle.addEventListener('click', () => {
    isOpen = !isOpen;
    sessionStorage.setItem(KEY, isOpen ? '1' : '');
    update();
  });
  const bar = h('section.problems', {'aria-label': 'Problems'}, h('div.problem-bar', badge, summary, toggle), items);
  root.append(bar);
  function update() {
    const problems = sortedProblems();
    const count = problems.filter(({severity}) => severity !== 'information').length;
    const [first] = problems;
    badge.className = `state state-${!first || first.severity === 'information' ? 'online' : first.severity === 'problem' ? 'blocked' : 'pending'}`;
    badge.lastChild.textContent = first?.severity ?? 'ok';
    // Only an owner gets problems, so nobody else is told that there are none.
    bar.hidden = !who?.isOwner && problems.length === 0;
    bar.dataset.severity = count ? first.severity : 'none';
    if (count) fill(summary, h('strong', `${count} ${count === 1 ? 'problem' : 'problems'}: `), h('bdi', printable(first.text, 200)));
    else fill(summary, 'No problems');
    toggle.hidden = problems.length === 0;
    toggle.setAttribute('aria-expanded', String(isOpen));
    toggle.firstChild.textContent = isOpen ? 'Hide' : 'Show';
    items.hidden = !isOpen || problems.length === 0;
    list(items, problems, (problem) => problem.id, item, (element, problem) => element.replaceChildren(...item(problem).childNodes));
  }
  update();
  return subscribe('problems', update);
}
