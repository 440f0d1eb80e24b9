"""Faults of daemons, phones, apps and links. Each either ends within its step, or changes what the oracle expects."""
import contextlib
import os
import resource
import time

from broker import Answer
from world import PORTS


def hold(choice, longest=2.0):
    time.sleep(choice.choice([0, 0, choice.uniform(0, longest)]))


def kill_broker(world, traffic, choice):
    begin = time.monotonic()
    world.broker.kill()
    hold(choice, 1)
    world.broker.start()
    traffic.quiet.append((begin, time.monotonic() + 1))


def restart_broker(world, traffic, choice):
    begin = time.monotonic()
    if not world.broker.stop():
        world.records.violate("the broker did not end within 10 s after SIGTERM")
    world.broker.start()
    traffic.quiet.append((begin, time.monotonic() + 1))


def freeze_broker(world, traffic, choice):
    begin = time.monotonic()
    world.broker.program.freeze()
    time.sleep(choice.uniform(0.2, 3))
    world.broker.program.thaw()
    traffic.quiet.append((begin, time.monotonic() + 1))


def kill_usbmuxd(world, traffic, choice):
    world.usbmuxd.program.kill()
    hold(choice)
    world.usbmuxd.start()


def restart_usbmuxd(world, traffic, choice):
    world.usbmuxd.program.stop()
    hold(choice)
    world.usbmuxd.start()


def freeze_usbmuxd(world, traffic, choice):
    world.usbmuxd.program.freeze()
    time.sleep(choice.uniform(0.2, 4))
    world.usbmuxd.program.thaw()


def reuse_numbers(world, traffic, choice):
    """usbmuxd restarts without one phone, so that the others get its DeviceID. Then the phone comes back."""
    attached = [phone for phone in world.phones[:3] if phone.is_attached]
    if len(attached) < 2:
        return
    phone = attached[0]
    world.usbmuxd.program.kill()
    phone.is_attached = False
    os.unlink(f"{world.usbmuxd.folder}/devices/{phone.udid}")
    world.usbmuxd.start()
    hold(choice)
    phone.attach()


def kill_adb(world, traffic, choice):
    world.adb.program.kill()
    hold(choice)
    world.adb.start()


def freeze_adb(world, traffic, choice):
    world.adb.program.freeze()
    time.sleep(choice.uniform(0.2, 4))
    world.adb.program.thaw()


def replug(world, traffic, choice):
    """Unplugs a phone, or plugs one in."""
    phone = choice.choice(world.phones)
    if phone.is_attached:
        phone.detach()
        if choice.random() < 0.4:
            return
        hold(choice)
    phone.attach()


def replug_all(world, traffic, choice):
    phones = [phone for phone in world.phones if phone.is_attached]
    for phone in phones:
        phone.detach()
    choice.shuffle(phones)
    for phone in phones:
        phone.attach()


def mute_phone(world, traffic, choice):
    """A phone stops sending, or does not answer a Connect. Its open streams end only with an unplug."""
    phone = choice.choice(world.phones[:3])
    if not phone.is_attached:
        return
    world.usbmuxd.set_fault(phone, choice.choice(["mute", "dropsyn"]))
    time.sleep(choice.uniform(0.2, 3))
    phone.detach()
    phone.attach()


def freeze_phone(world, traffic, choice):
    phone = choice.choice(world.phones[3:])
    if phone.is_attached:
        program = world.adb.phones[phone.serial]
        program.freeze()
        time.sleep(choice.uniform(0.2, 3))
        program.thaw()


def kill_avahi(world, traffic, choice):
    avahi = choice.choice([world.avahi, world.place.avahi])
    avahi.program.kill()
    hold(choice)
    avahi.start()


def freeze_avahi(world, traffic, choice):
    avahi = choice.choice([world.avahi, world.place.avahi])
    avahi.program.freeze()
    time.sleep(choice.uniform(0.2, 4))
    avahi.program.thaw()


def cut_link(world, traffic, choice):
    world.wifi.set_connected(False)
    time.sleep(choice.uniform(0.2, 3))
    world.wifi.set_connected(True)


def flap_link(world, traffic, choice):
    """The link loses a part of what the machines send."""
    for _ in range(choice.randrange(3, 12)):
        world.wifi.set_connected(False)
        time.sleep(choice.uniform(0.02, 0.1))
        world.wifi.set_connected(True)
        time.sleep(choice.uniform(0.02, 0.2))


def free_ports(world, phone):
    return [port for port in PORTS if port not in [app.port for app in world.apps if app.place is phone]]


def relaunch(world, traffic, choice):
    """An app crashes, and starts with another token at its port or at a free one."""
    app = choice.choice(world.apps)
    app.quit()
    hold(choice)
    port = app.port
    if app.place.is_phone:
        port = choice.choice([app.port, *free_ports(world, app.place)])
    elif choice.random() < 0.5:
        port = app.port + 1
    app.launch(port)
    if not app.place.is_phone:
        app.place.advertise(app)


def quit_app(world, traffic, choice):
    """An app on a phone ends, or one that ended starts again."""
    app = choice.choice([app for app in world.apps if app.place.is_phone])
    if app.is_running:
        app.quit()
    else:
        app.launch()


def swap_ports(world, traffic, choice):
    one, other = world.apps[:2]
    running = [app for app in (one, other) if app.is_running]
    for app in running:
        app.quit()
    one.port, other.port = other.port, one.port
    for app in running:
        app.launch()


def freeze_app(world, traffic, choice):
    app = choice.choice(world.apps)
    if app.is_running:
        app.program.freeze()
        time.sleep(choice.uniform(0.2, 4))
        app.program.thaw()


def fill_disk(world, traffic, choice):
    """The disk of the state is full. What the broker acknowledges meanwhile must stay."""
    begin = time.monotonic()
    filler = f"{world.broker.state}/filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))
    for _ in range(3):
        with contextlib.suppress(Answer, OSError):
            grant, secret = world.broker.pair(["registry.read"])
            world.grants[grant] = secret
    time.sleep(choice.uniform(0.1, 1.5))
    os.unlink(filler)
    traffic.quiet.append((begin, time.monotonic()))


def exhaust_descriptors(world, traffic, choice):
    """The broker has a few descriptors left for a while."""
    begin, pid = time.monotonic(), world.broker.program.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + choice.randrange(0, 6), limits[1]))
    time.sleep(choice.uniform(0.5, 2))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    traffic.quiet.append((begin, time.monotonic() + 1))


TABLE = {
    kill_broker: 4, restart_broker: 3, freeze_broker: 2, kill_usbmuxd: 4, restart_usbmuxd: 3, freeze_usbmuxd: 3, reuse_numbers: 4,
    kill_adb: 3, freeze_adb: 2, replug: 8, replug_all: 2, mute_phone: 3, freeze_phone: 2, kill_avahi: 2, freeze_avahi: 2, cut_link: 3,
    flap_link: 3, relaunch: 10, quit_app: 5, swap_ports: 4, freeze_app: 3, fill_disk: 2, exhaust_descriptors: 2,
}
