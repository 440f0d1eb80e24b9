# An app of each kind: discovery on the network and on phones, a screenshot over the cable, and a replayed state.

echo "Starting a D-Bus, avahi-daemon and usbmuxd of our own …"
start_daemons

echo "Starting apps on the network: AppReveal, MCP in lines, Flutter and OpenAgents …"
app desk --port 8123 --bundle com.example.desk
publish AppReveal-com.example.desk _appreveal._tcp 8123 bundleId=com.example.desk version=1.0 transport=streamable-http
app lines --role line-mcp --port 8124
publish Lines _mcp._tcp 8124
app flutter --role dart-vm --port 8125
app agents --role openagents --port 9099
publish Agents _openagents._tcp 9099

echo "Starting apps on a phone: AppReveal, MCP, DebugBridge, WebDriverAgent and DeviceKit; and app-debug on a second phone …"
app shop --address 127.0.1.1 --port 9876
app tools --address 127.0.1.1 --port 8765 --mode mcp
app bridge --role debugbridge --address 127.0.1.1 --port 9999
app driver --role webdriveragent --address 127.0.1.1 --port 8100
app kit --role devicekit --address 127.0.1.1 --port 12004
app camera --role app-debug --address 127.0.1.2 --port 9876
attach $phone 127.0.1.1 "Demo iPhone"
attach $second 127.0.1.2 "Demo iPad" --model iPad14,1
timeout 20 sh -c "until [ \$(grep -c 'serial number' usbmuxd.log) = 2 ]; do sleep 0.05; done" || { cat usbmuxd.log; exit 1; }

echo "Starting the broker, with its state debugger …"
printf '%s\n' '[debuglink]' 'enabled = true' 'name = "patchbay-desk"' >patchbay.toml
start_broker

echo "Starting an app that finds the state debugger with Bonjour, and connects to it …"
avahi-browse --resolve --parsable _debug._tcp >debuggers.log 2>&1 &
await debuggers.log '^=.*IPv4;patchbay-desk;'
port=$(awk -F ';' '/^=.*IPv4;patchbay-desk;/ { print $9; exit }' debuggers.log)
mkfifo taps
python3 "$here/../sampleapp.py" --role debug later 127.0.0.1 "$port" <taps >states.log &
exec 3>taps
await states.log connected
printf '%s\n' 'state {"cart":[],"paid":false} launch' 'state {"cart":["tea"],"paid":false} add' \
	'state {"cart":["tea"],"paid":true} pay' >&3
await states.log 'sent pay'
for listed in com.example.desk com.example.shop Lines shop-tools app-debug debug dart-vm openagents debugbridge webdriveragent devicekit; do
	await_answer list " $listed "
done

await_answer devices 'Demo iPhone'
await_answer devices 'Demo iPad'

announce "Two phones are on the cable."
run patchbay devices
announce "Every app is an endpoint. Those on the network wait for an approval."
run patchbay list
announce "A local port leads to the app on the phone."
run patchbay forward 7777:9876 --device 'Demo iPhone' --detach
run curl --silent --show-error --fail http://127.0.0.1:7777/health
echo
announce "The app with app-debug draws its screen. The picture comes over the cable."
run patchbay call "$(endpoint app-debug)" screenshot --output screenshot.png
bridge=$(endpoint debugbridge)
announce "The owner stores the boot token of DebugBridge. Patchbay exchanges it, acquires a session, and taps."
run patchbay secret set "$bridge" <<<BOOT-TOKEN-0123456789
run patchbay call "$bridge" tap x=10 y=20
agents=$(endpoint openagents)
announce "The owner approves OpenAgents. Patchbay probes it with an initialize."
run patchbay approve "$agents"
await agents.log text:
run cat agents.log
states=$(endpoint debug)
announce "The owner approves the app of the state debugger."
run patchbay approve "$states"
announce "It has sent its states."
run patchbay debug list "$states"
announce "State 2 is sent back to the app."
run patchbay debug send "$states" 2
await states.log shows
announce "The app prints the state that it received."
run grep shows states.log
