# The story of the demo: two apps, a port that survives an unplug and a killed broker, an agent's call that waits for a
# rebuild, a screenshot, and a guest with a grant of its own. Each step fails if its promise is not kept.
began=$SECONDS
echo "Starting a network of our own with Avahi, usbmuxd, a simulated iPhone and two apps …"
start_daemons
app notes --port 8123 --bundle com.example.notes
publish AppReveal-com.example.notes _appreveal._tcp 8123 bundleId=com.example.notes version=1.0 transport=streamable-http
python3 "$here/../../EndToEndTests/Dashboard/screenapp.py" picture >screen.png
app shop --address 127.0.1.1 --port 9876 --picture screen.png
attach $phone 127.0.1.1 "Demo iPhone"
await usbmuxd.log 'serial number'
: >patchbay.toml
start_broker
for listed in com.example.notes com.example.shop; do await_answer list " $listed "; done
await_answer devices 'Demo iPhone'
await_answer list 'shop-demo-iphone'
shop=shop-demo-iphone notes=$("$built/patchbay" list --quiet | grep notes)

announce "Patchbay finds two apps: one on the network, one on a phone."
run patchbay list
announce "An owner approves the address of an app on the network. An app on a cable needs no approval."
run patchbay approve "$notes"

announce "A port of this machine leads to the app on the phone."
run patchbay forward 7777:9876 --device 'Demo iPhone' --detach
run curl -sS --fail http://127.0.0.1:7777/health
echo

# Prints what curl gets, until it gets what is expected: `ok`, or `failed` after the reset of a connection.
curl_until() {
	timeout 20 bash -c "until [ \"\$(curl -s --max-time 2 -o /dev/null http://127.0.0.1:7777/health && echo ok || echo failed)\" = $1 ]
		do sleep 0.1; done" || { echo "curl never $1"; exit 1; }
	if [ "$1" = ok ]; then curl -sS --max-time 2 http://127.0.0.1:7777/health && echo
	else curl -sS --max-time 2 http://127.0.0.1:7777/health 2>&1 || true; fi
}
announce "The phone is unplugged, and plugged in again, while curl asks its app. The port stays open."
show "curl -sS http://127.0.0.1:7777/health        # the phone is unplugged"
unplug $phone
curl_until failed
run patchbay tunnels
show "curl -sS http://127.0.0.1:7777/health        # the phone is plugged in again"
plug_in $phone
curl_until ok

announce "The broker is killed. The next one has the same IDs, the approval and the tunnel."
"$built/patchbay" list --quiet >before
"$built/patchbay" tunnels --quiet >>before
run kill -9 $broker
await_end $broker
show "patchbayd &"
start_broker
await_answer list "$shop .*online"
await_answer list "$notes .*online"
run patchbay list
run patchbay tunnels
"$built/patchbay" list --quiet >after
"$built/patchbay" tunnels --quiet >>after
diff before after || { echo "The IDs have changed."; exit 1; }
curl_until ok

announce "An agent calls a tool while the app is rebuilt. The call waits for the new build."
stop shop
call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"launch_context","arguments":{}}}'
show "echo '$call' | patchbay mcp --endpoint $shop"
(printf '%s\n' "$call" && sleep 30) | "$built/patchbay" mcp --endpoint $shop >answer.log 2>&1 &
agent=$!
disown
await_answer show\ $shop 'suspect\|offline'
echo "(the app is not running; the call waits)"
[ ! -s answer.log ] || { cat answer.log; exit 1; }
app shop --address 127.0.1.1 --port 9876 --version 3.3.0 --picture screen.png
await answer.log '3\.3\.0'
kill $agent
cat answer.log

announce "A screenshot comes over the cable, as a PNG."
run patchbay call $shop screenshot --output screenshot.png
head -c 4 screenshot.png | grep -q PNG || { echo "screenshot.png is no PNG."; exit 1; }
[ ! -t 1 ] || [ "${DEMO_PICTURE:-}" = no ] || python3 "$here/picture.py" screenshot.png 22

announce "Another user of this machine gets a one-time invite to one app, and to nothing else."
guest() {
	show "sudo -u nobody $(printf ' %q' "$@" | cut -c 2-)"
	env HOME=$work/guest XDG_STATE_HOME=$work/guest PATH="$built:$PATH" setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
mkdir guest
chown 65534:65534 guest
chmod 711 .
"$built/patchbay" pair --app com.example.shop --detach --json >invite.json
show "patchbay pair --app com.example.shop --detach"
pairing=$(sed 's/.*"pairing":"\([^"]*\)".*/\1/' invite.json)
echo "${pairing%_*}_…"
guest patchbay join - <<<"$pairing"
guest patchbay list --broker 127.0.0.1:7282
announce "The owner revokes the grant. It ends at once."
run patchbay revoke "$("$built/patchbay" grants --quiet)"
! guest patchbay list --broker 127.0.0.1:7282 2>&1 || { echo "The grant still works."; exit 1; }
printf '\nThe demo took %d seconds.\n' $((SECONDS - began))
