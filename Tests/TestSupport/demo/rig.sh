# The rig of the demonstrations, sourced by `demo/run`: D-Bus, avahi-daemon, usbmuxd and simulated phones in private
# namespaces, sample apps, and functions that start, stop and await them. When the first process of the namespaces ends,
# the kernel ends the others and removes the network, the files and the mounts.
phone=00008030-001A2B3C4D5E6F70
second=00008110-0011223344556677
work=/run/demo

# Waits for a line in a log. After a timeout prints the log and fails.
await() {
	timeout 20 sh -c "until grep -q '$2' $1; do sleep 0.05; done" 2>/dev/null || { cat "$1"; exit 1; }
}

# Waits until a command of patchbay prints a text. After a timeout prints its output and fails.
await_answer() {
	timeout 20 sh -c "until $built/patchbay $1 2>&1 | grep -q '$2'; do sleep 0.1; done" ||
		{ echo "patchbay $1 never showed $2:"; "$built/patchbay" $1; cat patchbayd.log; exit 1; }
}

# The ID of the only endpoint of a kind.
endpoint() { "$built/patchbay" list | awk -v kind="$1" '$2 == kind { print $1 }'; }

# Starts a sample app with the name of its log, and returns when it listens. `stop NAME` ends it.
app() {
	local log=$1.log
	shift
	python3 "$here/../sampleapp.py" "$@" >"$log" 2>&1 &
	echo $! >"${log%.log}.pid"
	disown
	await "$log" 'listening on'
}
stop() {
	kill "$(cat "$1.pid")"
	await_end "$(cat "$1.pid")"
}
# Waits for the end of a process. It was disowned, because bash reports the end of a job.
await_end() { timeout 20 sh -c "while [ -d /proc/$1 ]; do sleep 0.05; done"; }

publish() {
	avahi-publish-service "$@" >"$1.log" 2>&1 &
	await "$1.log" Established
}

# Starts the lockdownd of a phone, and plugs the phone in, which is paired and whose apps listen on an address.
attach() {
	local phone=$1 address=$2
	shift 2
	python3 "$here/../lockdownd.py" "$@" >"lockdownd-$phone.log" &
	await "lockdownd-$phone.log" 'listening on'
	printf '%s\n' "addr=$address" "lockdown=$(cut -d ' ' -f 3 "lockdownd-$phone.log")" >"$phone.options"
	printf '<?xml version="1.0"?><plist version="1.0"><dict><key>HostID</key><string>0</string></dict></plist>' \
		>"usbmuxd/lockdown/$phone.plist"
	plug_in "$phone"
}
plug_in() {
	cp "$1.options" "usbmuxd/$1.new"
	mv "usbmuxd/$1.new" "usbmuxd/devices/$1"
}
unplug() { rm "usbmuxd/devices/$1"; }

# Starts the unmodified adb server on a socket of its own. It opens no USB device, and scans no port for emulators.
start_adb() {
	ADB_USB=0 ADB_EMU=1 ADB_LOCAL_TRANSPORT_MAX_PORT=1 adb -L "$ADB_SERVER_SOCKET" server nodaemon >>adb.log 2>&1 &
	echo $! >adb.pid
	disown
	timeout 20 bash -c 'until adb_request host:version >/dev/null 2>&1; do sleep 0.05; done' || { cat adb.log; exit 1; }
}
# Sends a request to the adb server. Its own client would start another server in the gap between two.
adb_request() {
	python3 - "$1" <<-'X'
		import socket, sys
		with socket.socket(socket.AF_UNIX) as server:
		    server.connect("adb")
		    server.sendall(b"%04x" % len(sys.argv[1]) + sys.argv[1].encode())
		    while part := server.recv(65536):
		        print(part.decode())
	X
}
export -f adb_request
# Plugs in an Android phone, whose apps and log are in the files pixel.apps and pixel.logcat.
attach_android() {
	touch pixel.apps pixel.logcat
	python3 -u "$here/../adb/phone.py" 5555 --serial "$1" --address "$2" --name "$3" --apps pixel.apps --logcat pixel.logcat \
		>phone.log 2>&1 &
	echo $! >phone.pid
	disown
	await phone.log listening
	adb_request host:emulator:5555
}
unplug_android() { kill "$(cat phone.pid)" && await_end "$(cat phone.pid)"; }

# Starts the broker with its state, and returns when it answers. `$broker` is its process.
start_broker() {
	"$built/patchbayd" --config patchbay.toml --socket "$PATCHBAY_SOCKET" --state-directory $work/state \
		>>patchbayd.log 2>&1 &
	broker=$!
	disown
	await_answer status 'patchbayd'
}

start_daemons() {
	mount -t tmpfs -o mode=755 none /run
	mkdir -p $work/usbmuxd/devices $work/usbmuxd/lockdown $work/state
	ip link set lo up
	cd $work
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$work/bus
	export USBMUXD_SOCKET_ADDRESS=UNIX:$work/usbmuxd/usbmuxd
	export ADB_SERVER_SOCKET=localfilesystem:$work/adb
	export PATCHBAY_SOCKET=$work/patchbay.sock
	PATH=$PATH:/usr/sbin
	cat >bus.conf <<-X
		<busconfig><type>system</type><listen>unix:path=$work/bus</listen><auth>EXTERNAL</auth>
		<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
		<allow receive_sender="*"/><allow send_type="method_call"/><allow send_type="signal"/></policy></busconfig>
	X
	printf '%s\n' '[server]' host-name=desk use-ipv6=no allow-interfaces=lo enable-dbus=yes '[wide-area]' enable-wide-area=no \
		'[publish]' publish-hinfo=no publish-workstation=no publish-aaaa-on-ipv4=no >avahi.conf
	dbus-daemon --config-file=bus.conf --nofork --nopidfile --print-address=1 >bus.log 2>&1 &
	await bus.log unix:
	avahi-daemon -f avahi.conf --no-rlimits --no-chroot --no-drop-root >avahi.log 2>&1 &
	FAKEUSB_DIR=$work/usbmuxd FAKEUSB_REDIRECT=1 LD_LIBRARY_PATH=$LIBRARY usbmuxd -f -p -v >usbmuxd.log 2>&1 &
	await usbmuxd.log 'Initialization complete'
	await avahi.log 'Server startup complete'
}
