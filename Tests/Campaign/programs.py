"""Programs with their output, and machines in network namespaces of their own."""
import os
import signal
import subprocess
import threading
import time

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../TestSupport")


class Failure(Exception):
    """The campaign itself could not do a step."""


def eventually(what, check, limit=10, interval=0.05):
    """Returns the first true value of the check."""
    end = time.monotonic() + limit
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {limit} s")
        time.sleep(interval)


class Program:
    """A process with its lines of output and the time of each. Ends with the campaign, because it has its PID namespace."""

    def __init__(self, *words, environment=None, machine=None, log=None, seen=None):
        self.lines, self.words, self.log, self.seen = [], words, log, seen
        prefix = machine.prefix if machine else []
        self.process = subprocess.Popen(
            [*prefix, *words], env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace")
        self.pid = self.process.pid
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            entry = (time.monotonic(), line.rstrip("\n"))
            self.lines.append(entry)
            if self.seen:
                self.seen(*entry)
            if self.log:
                with open(self.log, "a") as file:
                    file.write(line)

    def await_line(self, text, start=0, limit=15):
        def find():
            # A line can follow the end of the process.
            ended = self.process.poll() is not None
            line = next((line for _, line in self.lines[start:] if text in line), None)
            if line is None and ended:
                raise Failure(f"{self.words[:3]} ended: {self.lines[-5:]}")
            return line
        return eventually(f"{self.words[:3]} says {text!r}", find, limit, 0.02)

    def signal(self, number):
        if self.process.poll() is None:
            os.killpg(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, limit=5):
        """Ends the process as systemd does: with SIGTERM, and then with SIGKILL. False if that was necessary."""
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(limit)
            return True
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    @property
    def is_running(self):
        return self.process.poll() is None


def run(*words, machine=None, check=True):
    prefix = machine.prefix if machine else []
    done = subprocess.run([*prefix, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise Failure(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


class Machine:
    """A network namespace with the address 10.99.0.N on `eth0`, connected to the bridge of the campaign."""

    def __init__(self, number):
        self.address, self.port = f"10.99.0.{number}", f"port{number}"
        script = "mount -t tmpfs -o mode=755 none /run; ip link set lo up; echo ready; exec sleep infinity"
        self.holder = Program("unshare", "--net", "--mount", "sh", "-ec", script)
        self.holder.await_line("ready")
        self.prefix = ["nsenter", "--target", str(self.holder.pid), "--net", "--mount", "--"]
        run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        run("ip", "link", "set", self.port, "master", "br0", "up")
        run("sh", "-ec", "[ ! -e /proc/sys/net/ipv6 ] || echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad; "
            f"ip addr add {self.address}/24 dev eth0; ip link set eth0 up", machine=self)

    def stop(self):
        # The end of the namespace can be later than that of its processes.
        run("ip", "link", "del", self.port, check=False)
        self.holder.kill()

    def set_connected(self, is_connected):
        """Takes the link down without a goodbye, or up again."""
        run("ip", "link", "set", self.port, *(["master", "br0"] if is_connected else ["nomaster"]))


def make_bridge():
    """Prepares the namespaces that the campaign has for itself: this machine is 10.99.0.1."""
    run("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run")
    for words in ("link set lo up", "link add br0 type bridge mcast_snooping 0", "addr add 10.99.0.1/24 dev br0", "link set br0 up"):
        run("ip", *words.split())
