// A phone: where it is attached, who has it, its apps and tunnels, its label and note, and how to connect to it.
import {copyButton, fill, foreign, h, icon, list, notice, stateBadge, time} from './dom.js';
import {connectCard} from './connect.js';
import {act, actButton, emptyView, endLeaseButton, field} from './parts.js';
import {endpointRow, leaseChip, routesOf, tunnelChip, tunnelsOf, updateExtras, updateRow, updateTunnelChip} from './rows.js';
import {api, may, path, who} from './session.js';
import {deviceName, leaseOfDevice, refresh, store, subscribe, titleOf} from './store.js';

export const title = 'Phone';

export function render(root, {udid}, ctx) {
  const rows = new Map();
  const head = h('div.page-head');
  const facts = h('dl.facts');
  const routes = h('ul.route-list');
  const lease = h('div.lease-box');
  const apps = h('ul.rows');
  const noApps = h('p.dim', 'No debug server found. Start a development build with one; Patchbay looks at its known ports each few seconds.');
  const tunnels = h('ul.plain');
  const noTunnels = h('p.dim', 'No tunnel leads to this phone.');
  const note = noteCard(udid);
  const connect = h('div');
  const body = h('div.device-grid',
    h('section.card.wide', h('h2', 'Apps'), apps, noApps),
    h('section.card', h('h2', 'Routes'), routes, facts),
    h('section.card', h('h2', 'Lease'), lease),
    note.element, h('section.card', h('h2', 'Tunnels'), tunnels, noTunnels), connect);
  const missing = emptyView('This phone is not attached', 'The page shows it when it returns.');
  root.append(h('p.crumb', h('a', {href: '#/'}, 'Bench'), ' / phone'), head, missing, body);

  function update() {
    const endpoints = [...store.endpoints.values()].filter((endpoint) => endpoint.location?.udid === udid)
      .sort((a, b) => (titleOf(a) < titleOf(b) ? -1 : 1));
    const known = store.devices.get(udid);
    const device = known ?? {udid, name: endpoints[0]?.location.deviceName};
    ctx.setTitle(deviceName(device).slice(0, 60));
    missing.hidden = !store.loaded || Boolean(known);
    body.hidden = !known && !endpoints.length;
    const key = JSON.stringify([device, Boolean(known)]);
    if (head.key !== key) {
      head.key = key;
      fill(head, icon('phone', {class: 'icon large'}), h('h1.cut', foreign(deviceName(device), 80)), stateBadge(device.state ?? (known ? 'online' : 'offline'), {text: device.state ?? (known ? 'attached' : 'not attached')}),
        device.label && device.name && foreign(device.name, 60, 'dim'));
      fill(facts, [['UDID', h('span.mono', device.udid.slice(0, 80), copyButton(device.udid, 'Copy the UDID'))], ['Model', device.productType], ['System', device.productVersion],
        ['To do', device.hint ?? (device.paired === false && 'Not paired. Tunnels need no pairing.')], ['Attached', device.attachedAt ? time(device.attachedAt, {relative: true}) : null]].filter(([, value]) => value)
        .map(([name, value]) => [h('dt', name), h('dd', value instanceof Node ? value : foreign(value, 80))]));
      const ways = device.routes?.length ? device.routes : known ? [{transport: device.transport}] : [];
      fill(routes, ways.map((route, at) => h('li', h('span.wire', {class: [route.transport === 'network' ? 'wire-wifi' : 'wire-cable', at === 0 && 'preferred']}), icon(route.transport === 'network' ? 'wifi' : 'cable'),
        route.transport === 'network' ? 'Wi-Fi' : 'Cable', route.host ? [' at ', h('strong', foreign(route.host.name))] : null, at === 0 && ways.length > 1 && h('small', ' preferred'))));
      note.show(device);
    }
    if (!connect.firstChild && (known || endpoints.length)) {
      connect.append(connectCard({device, port: endpoints.flatMap(routesOf).find(({via, port}) => via === 'usb' && port)?.port}));
    }
    list(apps, endpoints, ({id}) => id, (endpoint) => {
      const row = endpointRow(endpoint, false);
      rows.set(endpoint.id, row);
      return row;
    }, updateRow);
    for (const row of rows.values()) updateExtras(row);
    noApps.hidden = endpoints.length > 0;
    const shown = [...tunnelsOf(`d:${udid}`), ...endpoints.flatMap(({id}) => tunnelsOf(`e:${id}`))];
    list(tunnels, shown, ({id}) => id, (tunnel) => h('li', tunnelChip(tunnel), h('small.mono', tunnel.spec.target.endpoint ?? tunnel.spec.target.device.abstractSocket ?? `port ${tunnel.spec.target.device.port}`)),
      (element, tunnel) => updateTunnelChip(element.firstChild, tunnel));
    noTunnels.hidden = shown.length > 0;
    showLease(endpoints);
  }

  // The app whose lease covers the phone: any of its apps does.
  let target;

  function showLease(endpoints) {
    const held = leaseOfDevice(udid);
    target = endpoints.find(({state}) => state === 'online') ?? endpoints[0];
    // The button stays while apps come and go, because a replaced button loses the click that is on its way.
    const key = `${held?.id}${held?.expiresAt}${held?.holder}${held?.waiting}${Boolean(target)}`;
    if (lease.key === key) return;
    lease.key = key;
    if (held) {
      fill(lease, h('p', leaseChip(held)), held.note && h('p.dim', foreign(held.note)), (held.own || who?.isOwner) && endLeaseButton(held, 'Release'));
    } else {
      fill(lease, h('p.dim', 'Free. A lease gives one client exclusive use of the phone and all its apps.'), may('endpoint.call') && target && actButton('Take for 30 minutes', async () => {
        await api('POST', '/v1/leases', {endpoint: target.id, seconds: 1800});
        await refresh('leases').catch(() => {});
      }, 'The phone is yours for 30 minutes.', 'primary'));
    }
  }

  update();
  return subscribe(['endpoints', 'devices', 'leases', 'tunnels', 'agents', 'status'], update);
}

// Label and note are the owner's words about the phone. A change from elsewhere never overwrites what is being typed.
function noteCard(udid) {
  const label = h('input', {maxlength: '40', placeholder: 'drawer 3', autocomplete: 'off'});
  const text = h('textarea', {rows: '2', maxlength: '400', placeholder: 'cracked screen'});
  const save = h('button', {type: 'submit', disabled: true}, 'Save');
  let shown = {label: '', note: ''};
  const isEdited = () => label.value !== shown.label || text.value !== shown.note;
  const form = h('form.v-form-body', {oninput: () => { save.disabled = !isEdited(); }, onsubmit: async (event) => {
    event.preventDefault();
    const next = {label: label.value.trim(), note: text.value.trim()};
    await act(save, async () => {
      await api('PUT', path('devices', udid, 'note'), next);
      shown = next;
      [label.value, text.value] = [next.label, next.note];
      notice('Saved.', {brief: true});
      refresh('devices').catch(() => {});
    });
    save.disabled = !isEdited();
  }}, field('Label', label), field('Note', text), h('div', save));
  const reading = h('p');
  const element = h('section.card', h('h2', 'Label and note'), who?.isOwner ? form : reading);
  return {element, show(device) {
    const next = {label: device.label ?? '', note: device.note ?? ''};
    fill(reading, next.label || next.note ? [foreign(next.label), ' ', foreign(next.note)] : h('span.dim', 'None.'));
    if (isEdited() || element.contains(document.activeElement)) return;
    shown = next;
    [label.value, text.value] = [next.label, next.note];
  }};
}
