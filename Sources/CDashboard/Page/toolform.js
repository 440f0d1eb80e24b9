// A form for the JSON schema of a tool. Parts that a form cannot show are JSON fields, and the whole form has a JSON view.
import {foreign, h, printable} from './dom.js';
import {asList, broken, isObject, kindOf, resolve, same, simplify, typeText} from './schema.js';

const DEPTH = 6;
let count = 0;

/**
 * Builds the form: `{element, read(), write(value)}`. `read` returns `{value}`, or `{errors}` and focuses the first wrong
 * field.
 */
export function schemaForm(schema) {
  const root = isObject(schema) ? schema : {};
  const top = node(resolve(root, root), root, {required: true, depth: 0});
  const raw = jsonField({description: 'The arguments as a JSON object.'}, {required: true, label: 'Arguments'});
  const empty = !Object.keys(resolve(root, root).properties ?? {}).length && top.kind === 'json' && !root.additionalProperties && !root.anyOf && !root.oneOf;
  const message = h('p.v-hint', {role: 'status'});
  const modes = ['Form', 'JSON'].map(text => h('button.v-tab', {'aria-pressed': text === 'Form' ? 'true' : 'false',
    onclick: () => show(text === 'JSON')}, text));
  const body = h('div.v-form-body', empty ? h('p.v-hint', 'This tool has no arguments.') : top.element);
  const element = h('div.v-form', h('div.v-tabs.v-form-modes', {role: 'group', 'aria-label': 'View of the arguments'}, modes), body, message);
  let isRaw = false;

  function show(wanted) {
    if (wanted === isRaw) return;
    message.textContent = '';
    if (wanted) {
      raw.write(top.read([]) ?? {});
    } else {
      const errors = [];
      const value = raw.read(errors);
      if (errors.length) return;
      if (value !== undefined) {
        top.write(value);
        if (!same(top.read([]), value)) {
          message.textContent = 'The form cannot show all of these arguments. They are sent as written here.';
          return;
        }
      }
    }
    isRaw = wanted;
    modes.forEach((button, index) => button.setAttribute('aria-pressed', String((index === 1) === isRaw)));
    body.replaceChildren(isRaw ? raw.element : empty ? h('p.v-hint', 'This tool has no arguments.') : top.element);
  }

  return {
    element,
    read() {
      const errors = [];
      let value = (isRaw ? raw : top).read(errors);
      if (isRaw && !errors.length && !isObject(value)) errors.push(raw.fail('Write a JSON object.'));
      errors[0]?.focus();
      return errors.length ? {errors} : {value: value ?? {}};
    },
    write(value) {
      top.write(value);
      if (!same(top.read([]), value)) { show(true); raw.write(value); }
    },
  };
}

function node(given, root, options) {
  const schema = simplify(resolve(given, root), root);
  const kind = options.depth > DEPTH ? 'json' : kindOf(schema);
  if (kind === 'object') return objectField(schema, root, options);
  if (kind === 'array') return arrayField(schema, root, options);
  if (kind === 'union') return unionField(schema, root, options);
  if (kind === 'json') return jsonField(schema, options);
  return plainField(schema, kind, options);
}

/** A label, a control, its description and its error. */
function labelled(control, schema, {label, required}, hint) {
  const id = `f${++count}`;
  control.id = id;
  const notes = [hint, schema.description].filter(text => typeof text === 'string' && text);
  const note = notes.length ? h('p.v-field-note', {id: `${id}n`}, foreign(notes.join(' '), 2000)) : null;
  const error = h('p.v-field-error', {id: `${id}e`});
  control.setAttribute('aria-describedby', note ? `${id}n ${id}e` : `${id}e`);
  if (required) control.setAttribute('aria-required', 'true');
  const element = h('div.v-field',
    label !== undefined && h('label', {for: id}, foreign(label), required && h('span.v-required', {title: 'Required'}, ' *'), h('span.v-type', typeText(schema))),
    control, note, error);
  const clear = () => { error.textContent = ''; control.removeAttribute('aria-invalid'); };
  control.addEventListener('input', clear);
  return {element, clear, fail(text) { error.textContent = text; control.setAttribute('aria-invalid', 'true'); return control; }};
}

function plainField(schema, kind, options) {
  const {required} = options;
  const choices = kind === 'const' ? [schema.const] : kind === 'enum' ? schema.enum : kind === 'boolean' ? [true, false] : null;
  const start = Object.hasOwn(schema, 'default') ? schema.default : kind === 'const' && required ? schema.const : undefined;
  let control;
  if (choices) {
    control = h('select', h('option', {value: ''}, required && start === undefined ? 'Choose…' : 'not sent'),
      choices.map((choice, index) => h('option', {value: String(index)}, printable(typeof choice === 'string' ? choice : JSON.stringify(choice)))));
  } else if (kind === 'string' && (schema.maxLength > 200 || schema.contentMediaType || schema.format === 'multiline')) {
    control = h('textarea', {rows: '3', spellcheck: 'false'});
  } else {
    control = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', inputmode: kind === 'number' ? 'decimal' : undefined});
  }
  const frame = labelled(control, schema, options);
  const field = {
    kind, element: frame.element, fail: frame.fail,
    read(errors) {
      frame.clear();
      const text = control.value;
      if (choices) {
        if (text === '') { if (required) errors.push(frame.fail('Choose a value.')); return undefined; }
        return choices[Number(text)];
      }
      if (text === '') {
        if (required && kind === 'string' && !(schema.minLength > 0) && control.dataset.empty) return '';
        if (required && !schema.nullable) errors.push(frame.fail('Required.'));
        return required && schema.nullable ? null : undefined;
      }
      const value = kind === 'number' ? Number(text.trim()) : text;
      const fault = kind === 'number' && !Number.isFinite(value) ? 'Write a number.'
        : kind === 'number' && schema.type === 'integer' && !Number.isSafeInteger(value) ? 'Write a whole number.' : broken(schema, value);
      if (fault) errors.push(frame.fail(fault));
      return value;
    },
    write(value) {
      frame.clear();
      if (choices) {
        const index = choices.findIndex(choice => same(choice, value));
        control.value = index < 0 ? '' : String(index);
      } else {
        // A text that was written empty counts as given.
        if (value === '') control.dataset.empty = '1'; else delete control.dataset.empty;
        control.value = value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
      }
    },
  };
  field.write(start);
  return field;
}

function jsonField(schema, options) {
  const control = h('textarea.v-code', {rows: options.label === 'Arguments' ? '8' : '3', spellcheck: 'false', placeholder: schema.type === 'array' ? '[]' : '{}'});
  const frame = labelled(control, schema, options);
  const field = {
    kind: 'json', element: frame.element, fail: frame.fail,
    read(errors) {
      frame.clear();
      if (!control.value.trim()) {
        if (options.required && options.label !== 'Arguments' && options.depth > 0) errors.push(frame.fail('Required. Write JSON.'));
        return undefined;
      }
      try { return JSON.parse(control.value); } catch (error) {
        errors.push(frame.fail(`This is not JSON: ${error.message}`));
        return undefined;
      }
    },
    write(value) { frame.clear(); control.value = value === undefined ? '' : JSON.stringify(value, null, 2); },
  };
  field.write(schema.default);
  return field;
}

function objectField(schema, root, {label, required, depth}) {
  const needed = asList(schema.required);
  const fields = Object.entries(schema.properties).sort(([a], [b]) => needed.includes(b) - needed.includes(a)).map(([name, part]) =>
    [name, node(part, root, {label: name, required: needed.includes(name), depth: depth + 1})]);
  const optional = !required && depth > 0;
  const toggle = optional && h('input', {type: 'checkbox', onchange: () => show()});
  const body = h('div.v-fields', fields.map(([, field]) => field.element));
  const name = [toggle, foreign(label ?? ''), required && label !== undefined && h('span.v-required', ' *'), h('span.v-type', 'object')];
  const element = depth === 0 ? body : h('fieldset.v-group', h('legend', optional ? h('label', name) : name),
    schema.description && h('p.v-field-note', foreign(schema.description, 2000)), body);
  const show = () => { body.hidden = optional && !toggle.checked; };
  if (optional) toggle.checked = isObject(schema.default);
  show();
  if (isObject(schema.default)) fields.forEach(([key, field]) => Object.hasOwn(schema.default, key) && field.write(schema.default[key]));
  return {
    kind: 'object', element,
    read(errors) {
      if (optional && !toggle.checked) return undefined;
      const value = {};
      for (const [key, field] of fields) {
        const part = field.read(errors);
        // A name such as __proto__ must become a member.
        if (part !== undefined) Object.defineProperty(value, key, {value: part, enumerable: true, configurable: true, writable: true});
      }
      return value;
    },
    write(value) {
      if (optional) { toggle.checked = isObject(value); show(); }
      fields.forEach(([key, field]) => field.write(isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined));
    },
  };
}

function arrayField(schema, root, {label, required, depth}) {
  const items = [];
  const rows = h('div.v-items');
  const error = h('p.v-field-error');
  const most = schema.maxItems ?? 100;
  const add = h('button', {onclick: () => { insert().focus(); }}, 'Add an item');
  const element = h('fieldset.v-group', h('legend', foreign(label ?? ''), required && h('span.v-required', ' *'), h('span.v-type', 'list')),
    schema.description && h('p.v-field-note', foreign(schema.description, 2000)), rows, add, error);

  function insert(value) {
    const field = node(schema.items, root, {required: true, depth: depth + 1});
    if (value !== undefined) field.write(value);
    const control = field.element.querySelector('input,select,textarea');
    control?.setAttribute('aria-label', `${label ?? 'list'}, item ${items.length + 1}`);
    const row = h('div.v-item', field.element,
      h('button.icon-button', {'aria-label': `Remove the item of ${label ?? 'the list'}`, onclick: () => {
        items.splice(items.findIndex(item => item.row === row), 1);
        row.remove();
        add.disabled = false;
        add.focus();
      }}, '×'));
    items.push({row, field});
    rows.append(row);
    add.disabled = items.length >= most;
    return control ?? add;
  }
  const write = value => {
    items.length = 0;
    rows.replaceChildren();
    add.disabled = false;
    asList(value).forEach(part => insert(part));
  };
  write(schema.default ?? (required ? Array.from({length: Math.min(schema.minItems ?? 0, 5)}) : []));
  return {
    kind: 'array', element, write,
    read(errors) {
      error.textContent = '';
      if (!items.length && !required) return undefined;
      if (items.length < schema.minItems) { error.textContent = `At least ${schema.minItems} items.`; errors.push(add); }
      return items.map(({field}) => field.read(errors));
    },
  };
}

function unionField(schema, root, {label, required, depth}) {
  const parts = schema.anyOf ?? schema.oneOf ?? asList(schema.type).filter(one => one !== 'null').map(type => ({...schema, type}));
  const names = parts.map((part, index) => part.title ?? typeText(simplify(resolve(part, root), root)) ?? `form ${index + 1}`);
  const select = h('select', {'aria-label': `Kind of ${label ?? 'value'}`, onchange: () => choose(select.value)},
    !required && h('option', {value: ''}, 'not sent'), names.map((name, index) => h('option', {value: String(index)}, printable(name))));
  const body = h('div');
  const element = h('fieldset.v-group', h('legend', foreign(label ?? ''), required && h('span.v-required', ' *')),
    schema.description && h('p.v-field-note', foreign(schema.description, 2000)), select, body);
  let field;
  function choose(index) {
    select.value = index;
    field = index === '' ? null : node(parts[Number(index)], root, {required: true, depth: depth + 1, label: depth ? undefined : 'Value'});
    body.replaceChildren(...field ? [field.element] : []);
  }
  const write = value => {
    if (value === undefined) return choose(required ? '0' : '');
    for (const index of parts.keys()) {
      choose(String(index));
      field.write(value);
      if (same(field.read([]), value)) return;
    }
  };
  write(schema.default);
  return {kind: 'union', element, write, read: errors => field?.read(errors)};
}
