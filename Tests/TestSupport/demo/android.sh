# The demo with an Android phone beside an iPhone: from the plug to a screenshot by one call, without a token that a person
# carries, also after a relaunch, a replug and a new adb server. Each step fails if its promise is not kept.
began=$SECONDS
pixel=R58M12ABCDE address=127.0.1.3
echo "Starting usbmuxd and an adb server of our own, and a simulated iPhone with an app …"
start_daemons
start_adb
app shop --address 127.0.1.1 --port 9876
attach $phone 127.0.1.1 "Demo iPhone"
await usbmuxd.log 'serial number'
: >patchbay.toml
start_broker
await_answer list 'shop-demo-iphone .*online'

# Starts the app of the Android phone, which logs its session URL with a port and a token that are new at each launch.
launch() {
	app wallet --mode android --address $address --bundle com.example.wallet
	port=$(awk '/^listening on/ { print $3 }' wallet.log)
	echo "$1 10234 com.example.wallet $port" >pixel.apps.new
	mv pixel.apps.new pixel.apps
	printf '11-26 10:00:00.000 10234 %5d %5d I AppReveal: %s\n' "$1" "$1" "$(sed -n 's/.*\(Session URL\)/\1/p' wallet.log)" >>pixel.logcat
}

announce "An Android phone is plugged in. Its app listens on any port, and wants a token."
launch 4711
attach_android $pixel $address "Pixel 8"
await_answer list 'wallet-pixel-8 .*online'
run adb devices -l
run patchbay devices
run patchbay list

announce "A screenshot takes one call. The token came from the phone's log, where the app itself had written it."
run patchbay call wallet-pixel-8 screenshot --output screenshot.png
head -c 4 screenshot.png | grep -q PNG || { echo "screenshot.png is no PNG."; exit 1; }
run patchbay show wallet-pixel-8

announce "The app is launched again: another port, another token, the same ID, and nobody does anything."
stop wallet
launch 4712
timeout 20 sh -c "until $built/patchbay call wallet-pixel-8 get_screen >/dev/null 2>&1; do sleep 0.1; done"
run patchbay call wallet-pixel-8 screenshot --output screenshot.png

announce "A tunnel in the words of adb. It survives an unplug and the end of the adb server, as adb's own does not."
run patchbay forward tcp:7777 "tcp:$port" --device 'Pixel 8' --detach
run curl -sS --fail http://127.0.0.1:7777/health
echo
unplug_android
run kill -9 "$(cat adb.pid)"
await_end "$(cat adb.pid)"
run patchbay tunnels
show "adb start-server        # and the phone is plugged in again"
start_adb
attach_android $pixel $address "Pixel 8"
timeout 20 sh -c 'until curl -s --fail --max-time 2 http://127.0.0.1:7777/health >/dev/null; do sleep 0.1; done'
run patchbay tunnels
run curl -sS --fail http://127.0.0.1:7777/health
echo
printf '\nThe demo took %d seconds.\n' $((SECONDS - began))
