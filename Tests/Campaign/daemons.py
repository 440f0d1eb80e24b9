"""The daemons around the broker: usbmuxd and adb with simulated phones, and Avahi."""
import contextlib
import os
import socket
import sys
import time

from programs import SUPPORT, Failure, Program, eventually, run


class Usbmuxd:
    """The real usbmuxd. A phone is a file: its creation plugs the phone in."""

    def __init__(self, folder, library):
        self.folder, self.library, self.program = folder, library, None
        os.makedirs(f"{folder}/devices")
        self.socket = f"{folder}/usbmuxd"
        self.start()

    def start(self):
        environment = {"FAKEUSB_DIR": self.folder, "FAKEUSB_REDIRECT": "1", "LD_LIBRARY_PATH": self.library}
        words = ("prlimit", "--nofile=8192:8192", "usbmuxd", "--foreground", "--no-preflight", "-v")
        self.program = Program(*words, environment=environment)
        self.program.await_line("Initialization complete")
        for udid in os.listdir(f"{self.folder}/devices"):
            self.program.await_line(f"serial number {udid}")

    def attach(self, phone):
        seen = len(self.program.lines)
        self.write(phone.udid, phone.address)
        self.program.await_line(f"serial number {phone.udid}", seen)

    def detach(self, phone):
        seen = len(self.program.lines)
        os.unlink(f"{self.folder}/devices/{phone.udid}")
        self.program.await_line("Removed device", seen)

    def set_fault(self, phone, fault):
        self.write(phone.udid, phone.address, fault)

    def write(self, udid, address, fault="none"):
        with open(f"{self.folder}/new", "w") as file:
            file.write(f"addr={address}\nrate=40000\nfault={fault}\n")
        os.rename(f"{self.folder}/new", f"{self.folder}/devices/{udid}")


class Adb:
    """The real adb server. A phone is a program, which the server reaches like an emulator."""

    def __init__(self, folder):
        self.folder, self.phones, self.ports, self.program = folder, {}, {}, None
        os.makedirs(folder)
        self.socket = f"{folder}/adb"
        self.start()

    def start(self):
        environment = {"HOME": self.folder, "ADB_USB": "0", "ADB_EMU": "1", "ADB_LOCAL_TRANSPORT_MAX_PORT": "1"}
        self.program = Program("adb", "-L", f"localfilesystem:{self.socket}", "server", "nodaemon", environment=environment)
        eventually("the adb server answers", self.is_answering)
        for serial in self.phones:
            self.announce(serial)

    def is_answering(self):
        with contextlib.suppress(OSError):
            return self.ask("host:version")

    def attach(self, phone):
        port = self.ports.setdefault(phone.serial, 5581 + 2 * len(self.ports))
        program = Program(sys.executable, "-u", f"{SUPPORT}/adb/phone.py", str(port), "--address", phone.address, "--serial", phone.serial)
        program.await_line("listening")
        self.phones[phone.serial] = program
        self.announce(phone.serial)

    def detach(self, phone):
        self.phones.pop(phone.serial).kill()
        eventually("adb removes the phone", lambda: self.state(phone.serial) != "device")

    def announce(self, serial):
        with contextlib.suppress(OSError):
            self.ask(f"host:emulator:{self.ports[serial]}")
        eventually("adb lists the phone", lambda: self.state(serial) == "device", 15)

    def state(self, serial):
        name = f"emulator-{self.ports[serial] - 1}\t"
        lines = self.ask("host:devices")[4:].decode().splitlines()
        return next((line[len(name):] for line in lines if line.startswith(name)), None)

    def ask(self, service):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(self.socket)
            connection.sendall(b"%04x" % len(service) + service.encode())
            text = b""
            while part := connection.recv(1 << 16):
                text += part
            return text[4:]


BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
<allow send_type="method_call"/><allow send_type="signal"/></policy></busconfig>
"""
AVAHI = """[server]
host-name=%s
use-ipv4=yes
use-ipv6=yes
allow-interfaces=%s
enable-dbus=yes
[wide-area]
enable-wide-area=no
[publish]
publish-hinfo=no
publish-workstation=no
"""


class Avahi:
    """A private D-Bus and the real avahi-daemon on a machine, or on the one of the campaign."""

    def __init__(self, folder, name, interface, machine=None):
        self.folder, self.machine, self.adverts = folder, machine, {}
        os.makedirs(folder)
        with open(f"{folder}/bus.conf", "w") as file:
            file.write(BUS % folder)
        with open(f"{folder}/avahi.conf", "w") as file:
            file.write(AVAHI % (name, interface))
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}
        words = ("dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile", "--print-address=1")
        self.bus = Program(*words, machine=machine)
        self.bus.await_line("unix:path=")
        self.start()

    def start(self):
        words = ("avahi-daemon", "-f", f"{self.folder}/avahi.conf", "--no-rlimits", "--no-chroot", "--no-drop-root")
        self.program = Program(*words, environment=self.environment, machine=self.machine)
        self.program.await_line("Server startup complete")
        for name in list(self.adverts):
            self.advertise(name, *self.adverts[name][1:])

    def stop(self):
        for name in list(self.adverts):
            self.withdraw(name)
        self.program.kill()
        self.bus.kill()

    def advertise(self, name, port, *txt):
        """Publishes a service of AppReveal, in place of an earlier one of this name."""
        self.withdraw(name)
        words = ("avahi-publish-service", name, "_appreveal._tcp", str(port), *txt)
        program = Program(*words, environment=self.environment, machine=self.machine)
        self.adverts[name] = (program, port, *txt)
        try:
            program.await_line("Established under name")
        except Failure:
            time.sleep(1)
            raise

    def withdraw(self, name):
        if name in self.adverts:
            self.adverts.pop(name)[0].kill()


def build_usb(folder):
    """Builds the stand-in for libusb, which later campaigns use again."""
    run("mkdir", "-p", folder)
    run("flock", f"{folder}/lock", "make", "--silent", "-C", f"{SUPPORT}/usbmuxd", f"BUILD={folder}/usbmuxd")
    return f"{folder}/usbmuxd"
