"""One host: usbmuxd with three phones, adb with two, apps on the network, an intruder, and a broker."""
import os

from apps import BYTES_PORT, App, ByteServer, Records, set_trap
from broker import Answer, Broker
from daemons import Adb, Avahi, Usbmuxd
from programs import Machine, eventually, run

PORTS = [9876, 8765, 9877]
CONFIGURATION = f"[devices]\nprobe_ports = {PORTS}\n[discovery]\ninterfaces = [\"br0\"]\n"


class Phone:
    is_phone, machine = True, None

    def __init__(self, name, udid, address, daemon, serial=None):
        self.name, self.udid, self.address, self.daemon, self.serial = name, udid, address, daemon, serial
        self.is_attached = False
        self.leases = []

    def attach(self):
        self.daemon.attach(self)
        self.is_attached = True

    def detach(self):
        self.is_attached = False
        self.daemon.detach(self)


class Place:
    """A machine of the network whose apps are advertised."""
    is_phone, is_attached = False, True

    def __init__(self, name, machine, avahi):
        self.name, self.machine, self.avahi, self.address = name, machine, avahi, machine.address
        self.leases = []

    def advertise(self, app):
        txt = [f"bundleId={app.bundle}", "version=3.2.0", "transport=streamable-http", "auth=session-token"]
        self.avahi.advertise(f"AppReveal-{app.bundle}", app.port, *txt, *([f"boot={app.boot}"] if app.boot else []))


class World:
    def __init__(self, built, folder, library):
        self.folder, self.records = folder, Records()
        self.usbmuxd = Usbmuxd(f"{folder}/usb", library)
        self.adb = Adb(f"{folder}/adb")
        self.phones = [Phone(f"i{n}", f"00008030-00{n:02}2B3C4D5E6F70", f"127.64.0.{n}", self.usbmuxd) for n in (1, 2, 3)]
        self.phones += [Phone(f"a{n}", f"android-R58M1{n}ABCDE", f"127.65.0.{n}", self.adb, f"R58M1{n}ABCDE") for n in (1, 2)]
        self.wifi, self.intruder = Machine(2), Machine(3)
        self.avahi = Avahi(f"{folder}/avahi", "lab", "br0")
        self.place = Place("wifi", self.wifi, Avahi(f"{folder}/avahi-wifi", "wifi", "eth0", self.wifi))
        self.hostile = Avahi(f"{folder}/avahi-intruder", "intruder", "eth0", self.intruder)
        kinds = [(0, "cam", "ios", 0), (0, "shop", "ios", 1), (1, "maps", "flutter", 0), (2, "notes", "ios", 0), (3, "mail", "android", 0),
                 (4, "music", "android", 0)]
        self.apps = [App(f"com.example.{name}", mode, self.phones[phone], PORTS[port], self.records) for phone, name, mode, port in kinds]
        self.apps += [App("com.example.radio", "ios", self.place, 49213, self.records)]
        self.servers = [ByteServer(phone.name, phone.address, self.records) for phone in self.phones]
        self.trap = set_trap(self.intruder, 49300, self.records)
        for phone in self.phones:
            phone.attach()
        state = f"{folder}/broker/state"
        os.makedirs(state)
        run("mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", state)
        environment = {"USBMUXD_SOCKET_ADDRESS": f"UNIX:{self.usbmuxd.socket}",
                       "ADB_SERVER_SOCKET": f"localfilesystem:{self.adb.socket}", **self.avahi.environment}
        self.broker = Broker(built, f"{folder}/broker", environment, CONFIGURATION, f"{folder}/broker.log")
        self.prepare()

    def prepare(self):
        """Starts the apps, and gives each what it keeps: an ID, a grant and a tunnel."""
        for app in self.apps:
            app.launch()
            if not app.place.is_phone:
                app.place.advertise(app)
        self.hostile.advertise("AppReveal-com.example.evil", 49300, "bundleId=com.example.evil", "transport=streamable-http")
        for app in self.apps:
            app.id = eventually(f"{app.bundle} is listed", lambda app=app: self.find(app), 30)["id"]
            if not app.place.is_phone:
                self.approve(app)
        self.tunnels = {}
        for phone in self.phones:
            phone.tunnel, phone.port = self.broker.forward({"device": {"udid": phone.udid, "port": BYTES_PORT}})
            self.tunnels[phone.tunnel] = phone.port
        self.grants, self.ended_grants = {}, []
        for app in self.apps:
            app.tunnel, app.tunnel_port = self.broker.forward({"endpoint": app.id})
            self.tunnels[app.tunnel] = app.tunnel_port
            app.grant, app.secret = self.broker.pair(["registry.read", "endpoint.call", "secret.use"], {"endpoints": [app.id]})
            self.grants[app.grant] = app.secret
        self.approvals = {app.id for app in self.apps if not app.place.is_phone}

    def approve(self, app):
        self.broker.request("PUT", f"/v1/endpoints/{app.id}/approval", {"address": app.place.address})

    def find(self, app, endpoints=None):
        """Returns the entry of the list whose route is the place and port of the app."""
        for endpoint in self.broker.endpoints() if endpoints is None else endpoints:
            if any(self.leads(route, app) for route in endpoint["routes"]):
                return endpoint

    @staticmethod
    def leads(route, app):
        if app.place.is_phone:
            return route["via"] == "usb" and (route["udid"], route["port"]) == (app.place.udid, app.port)
        return route["via"] == "network" and (route["address"], route["port"]) == (app.place.address, app.port)

    def stop(self):
        """Ends everything, so that another world can begin."""
        for app in self.apps:
            if app.program:
                app.quit()
        self.broker.kill()
        for phone in self.adb.phones.values():
            phone.kill()
        for server in self.servers:
            server.stop()
        for daemon in (self.usbmuxd.program, self.adb.program, self.trap):
            daemon.kill()
        for avahi in (self.avahi, self.place.avahi, self.hostile):
            avahi.stop()
        for machine in (self.wifi, self.intruder):
            machine.stop()
        run("umount", "-l", self.broker.state)

    def give_token(self, app):
        """Stores the token of the current launch. True if it is stored."""
        if app.known == app.token:
            return True
        try:
            self.broker.request("PUT", f"/v1/endpoints/{app.id}/secret", {"secret": app.token})
        except (Answer, OSError):
            return False
        app.known = app.token
        return True
