// Reads JSON schemas of tools: references, unions and checks. Has no DOM, so tests can import it alone.

/** Follows local references and merges `allOf`. An unreadable schema becomes `{}`, which any value meets. */
export function resolve(schema, root, depth = 0) {
  if (!isObject(schema) || depth > 20) return {};
  if (typeof schema.$ref === 'string') {
    const {$ref, ...own} = schema;
    return {...resolve(at($ref, root), root, depth + 1), ...own};
  }
  if (!Array.isArray(schema.allOf)) return schema;
  const {allOf, ...own} = schema;
  return [...allOf.map(part => resolve(part, root, depth + 1)), own].reduce((all, part) => ({
    ...all, ...part,
    ...(all.properties || part.properties) && {properties: {...all.properties, ...part.properties}},
    ...(all.required || part.required) && {required: [...new Set([...asList(all.required), ...asList(part.required)])]},
  }), {});
}

function at(reference, root) {
  if (!reference.startsWith('#')) return {};
  let value = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = safeDecode(part).replace(/~1/g, '/').replace(/~0/g, '~');
    value = value !== null && typeof value === 'object' && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

function safeDecode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** The kind of field for a resolved schema: const, enum, union, boolean, number, string, object, array or json. */
export function kindOf(schema) {
  if (Object.hasOwn(schema, 'const')) return 'const';
  if (Array.isArray(schema.enum) && schema.enum.length) return 'enum';
  if (variants(schema).length > 1) return 'union';
  const type = Array.isArray(schema.type) ? schema.type.find(one => one !== 'null') : schema.type;
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'boolean' || type === 'string') return type;
  if ((type === 'object' || !type) && isObject(schema.properties) && Object.keys(schema.properties).length) return 'object';
  if ((type === 'array' || !type) && isObject(schema.items)) return 'array';
  return 'json';
}

/** Replaces a union by its only alternative beside null, and a union of constants by an enumeration. */
export function simplify(schema, root) {
  const all = variants(schema).map(one => resolve(one, root));
  if (!all.length) return schema;
  const {anyOf, oneOf, ...own} = schema;
  const others = all.filter(one => one.type !== 'null');
  const nullable = others.length < all.length || undefined;
  if (others.every(one => Object.hasOwn(one, 'const') || Array.isArray(one.enum))) {
    return {...own, enum: others.flatMap(one => one.enum ?? [one.const]), nullable};
  }
  if (others.length === 1) return {...simplify(others[0], root), ...own, type: others[0].type, nullable};
  return {...own, anyOf: others, nullable};
}

function variants(schema) {
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) return union;
  if (!Array.isArray(schema.type)) return [];
  const types = schema.type.filter(one => one !== 'null');
  return types.length > 1 ? types.map(type => ({...schema, type})) : [];
}

/** The rule that a number or text breaks, as a sentence; undefined if it breaks none. */
export function broken(schema, value) {
  const {minimum: low, maximum: high, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf, minLength, maxLength} = schema;
  if (typeof value === 'number') {
    if (typeof low === 'number' && value < low) return `At least ${low}.`;
    if (typeof high === 'number' && value > high) return `At most ${high}.`;
    if (typeof above === 'number' && value <= above) return `More than ${above}.`;
    if (typeof below === 'number' && value >= below) return `Less than ${below}.`;
    if (typeof multipleOf === 'number' && Math.abs(value / multipleOf - Math.round(value / multipleOf)) > 1e-9) return `A multiple of ${multipleOf}.`;
  }
  if (typeof value === 'string') {
    const length = [...value].length;
    if (length < minLength) return `At least ${minLength} characters.`;
    if (length > maxLength) return `At most ${maxLength} characters.`;
  }
}

/** The type and the limits of a schema for a label: `integer, 1 to 99`. */
export function typeText(schema) {
  const kind = kindOf(schema);
  const type = kind === 'number' && schema.type === 'integer' ? 'integer'
    : kind === 'enum' ? 'choice' : kind === 'union' ? 'one of' : kind === 'json' ? (typeof schema.type === 'string' ? schema.type : 'JSON') : kind;
  const {minimum: low, maximum: high} = schema;
  const range = low !== undefined && high !== undefined ? `, ${low} to ${high}` : low !== undefined ? `, from ${low}` : high !== undefined ? `, to ${high}` : '';
  const format = kind === 'string' && typeof schema.format === 'string' ? `, ${schema.format}` : '';
  return type + range + format;
}

export const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value);
export const asList = value => Array.isArray(value) ? value : [];
export const same = (one, other) => canonical(one) === canonical(other);
const canonical = value => JSON.stringify(value, (_, part) =>
  isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1)) : part);
