// A phone: where it is attached, who has it, its apps and tunnels, its label and note, and how to connect to it.
import {confirmDialog, copyButton, fill, foreign, h, icon, list, notice, noticeProblem, stateBadge, time} from './dom.js';
import {connectCard} from './connect.js';
import {endpointRow, leaseChip, routesOf, tunnelChip, tunnelsOf, updateExtras, updateRow, updateTunnelChip} from './rows.js';
import {api, may, who} from './session.js';
import {deviceName, leaseOfDevice, refresh, store, subscribe, titleOf} from './store.js';

export const title = 'Phone';

export function render(root, {udid}, ctx) {
  const rows = new Map();
  const head = h('div', {class: 'page-head'});
  const facts = h('dl', {class: 'facts'});
  const routes = h('ul', {class: 'route-list'});
  const lease = h('div', {class: 'lease-box'});
  const apps = h('ul', {class: 'rows'});
  const noApps = h('p', {class: 'dim'}, 'No debug server found. Start a development build with one; Patchbay looks at its known ports each few seconds.');
  const tunnels = h('ul', {class: 'plain'});
  const noTunnels = h('p', {class: 'dim'}, 'No tunnel leads to this phone.');
  const note = noteCard(udid);
  const connect = h('div');
  const body = h('div', {class: 'device-grid'},
    h('section', {class: 'card wide'}, h('h2', null, 'Apps'), apps, noApps),
    h('section', {class: 'card'}, h('h2', null, 'Routes'), routes, facts),
    h('section', {class: 'card'}, h('h2', null, 'Lease'), lease),
    note.element, h('section', {class: 'card'}, h('h2', null, 'Tunnels'), tunnels, noTunnels), connect);
  const missing = h('div', {class: 'empty', hidden: true}, h('h2', null, 'This phone is not attached'), h('p', null, 'The page shows it when it returns.'));
  root.append(h('p', {class: 'crumb'}, h('a', {href: '#/'}, 'Bench'), ' / phone'), head, missing, body);

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
      fill(head, icon('phone', {class: 'icon large'}), h('h1', {class: 'cut'}, foreign(deviceName(device), null, 80)), stateBadge(known ? 'online' : 'offline', {text: known ? 'attached' : 'not attached'}),
        device.label && device.name ? foreign(device.name, {class: 'dim'}, 60) : null);
      fill(facts, [['UDID', h('span', {class: 'mono'}, device.udid.slice(0, 80), copyButton(device.udid, 'Copy the UDID'))], ['Model', device.productType], ['System', device.productVersion],
        ['Attached', device.attachedAt ? time(device.attachedAt, {relative: true}) : null]].filter(([, value]) => value)
        .map(([name, value]) => [h('dt', null, name), h('dd', null, value instanceof Node ? value : foreign(value, null, 80))]));
      const ways = device.routes?.length ? device.routes : known ? [{transport: device.transport}] : [];
      fill(routes, ways.map((route, at) => h('li', null, h('span', {class: ['wire', route.transport === 'network' ? 'wire-wifi' : 'wire-cable', at === 0 && 'preferred']}), icon(route.transport === 'network' ? 'wifi' : 'cable'),
        route.transport === 'network' ? 'Wi-Fi' : 'Cable', route.host ? [' at ', h('strong', null, foreign(route.host.name))] : null, at === 0 && ways.length > 1 ? h('small', null, ' preferred') : null)));
      note.show(device);
    }
    if (!connect.firstChild && (known || endpoints.length)) {
      connect.append(connectCard({device, port: endpoints.flatMap(routesOf).find(({via}) => via === 'usb')?.port}));
    }
    list(apps, endpoints, ({id}) => id, (endpoint) => {
      const row = endpointRow(endpoint, false);
      rows.set(endpoint.id, row);
      return row;
    }, updateRow);
    for (const row of rows.values()) updateExtras(row);
    noApps.hidden = endpoints.length > 0;
    const shown = [...tunnelsOf(`d:${udid}`), ...endpoints.flatMap(({id}) => tunnelsOf(`e:${id}`))];
    list(tunnels, shown, ({id}) => id, (tunnel) => h('li', null, tunnelChip(tunnel), h('small', {class: 'mono'}, tunnel.spec.target.endpoint ?? `port ${tunnel.spec.target.device.port}`)),
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
    const act = (label, run, kind) => h('button', {type: 'button', class: kind, onclick: async (event) => {
      event.target.disabled = true;
      try {
        await run();
        await refresh('leases').catch(() => {});
      } catch (error) {
        noticeProblem(error);
      }
      event.target.disabled = false;
    }}, label);
    const take = (label) => act(label, async () => {
      await api('POST', '/v1/leases', {endpoint: target.id, seconds: 1800});
      notice('The phone is yours for 30 minutes.');
    }, 'primary');
    const end = async () => {
      const asks = held.own ? null : {title: `End the lease of ${held.holder.slice(0, 60)}?`, text: 'The holder loses exclusive use of the phone at once. Its running calls are not cut.', action: 'End the lease', danger: true};
      if (asks && !await confirmDialog(asks)) return;
      await api('DELETE', `/v1/leases/${encodeURIComponent(held.id)}`);
    };
    if (held) {
      fill(lease, h('p', null, leaseChip(held)), held.note ? h('p', {class: 'dim'}, foreign(held.note)) : null,
        held.own || who?.isOwner ? act(held.own ? 'Release' : 'End the lease…', end, held.own ? '' : 'danger') : null);
    } else {
      fill(lease, h('p', {class: 'dim'}, 'Free. A lease gives one client exclusive use of the phone and all its apps.'),
        may('endpoint.call') && target ? take('Take for 30 minutes') : null);
    }
  }

  update();
  return subscribe(['endpoints', 'devices', 'leases', 'tunnels', 'agents', 'status'], update);
}

// Label and note are the owner's words about the phone. A change from elsewhere never overwrites what is being typed.
function noteCard(udid) {
  const label = h('input', {id: 'device-label', maxlength: '40', placeholder: 'drawer 3', autocomplete: 'off'});
  const text = h('textarea', {id: 'device-note', rows: '2', maxlength: '400', placeholder: 'cracked screen'});
  const save = h('button', {type: 'submit', disabled: true}, 'Save');
  let shown = {label: '', note: ''};
  const isEdited = () => label.value !== shown.label || text.value !== shown.note;
  const form = h('form', {class: 'note-form', oninput: () => { save.disabled = !isEdited(); }, onsubmit: async (event) => {
    event.preventDefault();
    save.disabled = true;
    const next = {label: label.value.trim(), note: text.value.trim()};
    try {
      await api('PUT', `/v1/devices/${encodeURIComponent(udid)}/note`, next);
      shown = next;
      [label.value, text.value] = [next.label, next.note];
      notice('Saved.', {brief: true});
      refresh('devices').catch(() => {});
    } catch (error) {
      noticeProblem(error);
      save.disabled = false;
    }
  }}, h('div', {class: 'field'}, h('label', {htmlFor: 'device-label'}, 'Label'), label),
  h('div', {class: 'field'}, h('label', {htmlFor: 'device-note'}, 'Note'), text), h('div', null, save));
  const reading = h('p');
  const element = h('section', {class: 'card'}, h('h2', null, 'Label and note'), who?.isOwner ? form : reading);
  return {element, show(device) {
    const next = {label: device.label ?? '', note: device.note ?? ''};
    fill(reading, next.label || next.note ? [foreign(next.label), ' ', foreign(next.note)] : h('span', {class: 'dim'}, 'None.'));
    if (isEdited() || element.contains(document.activeElement)) return;
    shown = next;
    [label.value, text.value] = [next.label, next.note];
  }};
}
