"""Hosts in network namespaces of their own, connected by a virtual switch. Needs root."""
import subprocess
import sys

ACCEPT = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=1024)
print("ready", flush=True)
while True:
    listener.accept()[0].close()
"""


class Network:
    """A switch. The namespaces end with `stop`."""

    def __init__(self):
        self.programs = []
        self.fabric = self.namespace()
        self.script(self.fabric, "ip link add br0 type bridge && ip link set br0 up")

    def connect(self, app):
        """Makes a host with an app that accepts connections on a loopback port. Returns its address, and the prefix of its commands."""
        number = len(self.programs)
        address = f"10.98.{number // 200}.{number % 200 + 1}"
        host = self.namespace()
        self.script(self.fabric, f"ip link add port{number} type veth peer name eth0 netns {host} && "
                                 f"ip link set port{number} master br0 up")
        self.script(host, f"ip addr add {address}/16 dev eth0 && ip link set eth0 up")
        self.spawn([*self.enter(host), sys.executable, "-c", ACCEPT, "127.0.0.1", str(app)])
        return address, self.enter(host)

    def stop(self):
        for program in reversed(self.programs):
            program.kill()
            program.wait()

    def namespace(self):
        return self.spawn(["unshare", "--net", "sh", "-ec", "ip link set lo up; echo ready; exec sleep infinity"])

    def spawn(self, words):
        """Starts a program that says when it is ready. Returns its process ID."""
        program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.programs.append(program)
        assert program.stdout.readline() == "ready\n", words
        return program.pid

    @staticmethod
    def enter(process):
        return ["nsenter", "--target", str(process), "--net", "--"]

    def script(self, process, text):
        subprocess.run([*self.enter(process), "sh", "-ec", text], check=True)
