import Model
import Testing

@testable import patchbay

@Suite struct DoctorCommandTests {
    @Test func `a socket that all users may use is a failure with a hint`() {
        let open = BrokerCheck.socket("/x", (mode: 0o666, owner: 0), isForAll: false)
        let closed = BrokerCheck.socket("/x", (mode: 0o600, owner: 1000), isForAll: false)

        #expect(open.map(\.verdict) == [.fail])
        #expect(open.first?.hint == "sudo chmod 0600 /x")
        #expect(closed.map(\.verdict) == [.ok])
    }

    @Test func `a socket that allow_any_user opens to all users is ok`() {
        let check = BrokerCheck.socket("/x", (mode: 0o666, owner: 0), isForAll: true).first

        #expect(check?.verdict == .ok)
        #expect(check?.detail.contains("allow_any_user = true") == true)
    }

    @Test func `a finding about access is a warning that contains its hint`() {
        let check = BrokerCheck.finding("the clock went back by 9 s: patchbay doctor --fix-clock")

        #expect(check.verdict == .warn)
        #expect(
            DoctorCommand.text(check, isColoured: false).hasSuffix(
                "access     the clock went back by 9 s: patchbay doctor --fix-clock"
            )
        )
    }

    @Test func `a missing source is a warning with the hint of the source, and a stopped usbmuxd is ok`() {
        let source = SourceStatus(
            name: "bonjour",
            state: .missing,
            detail: "no Avahi",
            hint: "apt install avahi-daemon"
        )
        let asleep = SourceStatus(name: "usbmuxd", state: .missing, detail: "not running", hint: "plug in a phone")

        #expect(
            BrokerCheck.source(source)
                == Check(name: "bonjour", verdict: .warn, detail: "no Avahi", hint: "apt install avahi-daemon")
        )
        #expect(BrokerCheck.source(asleep) == .ok("usbmuxd", "not running"))
    }

    @Test func `a stopped usbmuxd is ok, and a missing usbmuxd has an install hint`() {
        let asleep = UsbmuxdCheck(environment: ["USBMUXD_SOCKET_ADDRESS": "/nonexistent/mux"], programs: ["/bin/sh"])
        let missing = UsbmuxdCheck(environment: ["USBMUXD_SOCKET_ADDRESS": "UNIX:/nonexistent/mux"], programs: [])

        #expect(asleep.run().verdict == .ok)
        #expect(missing.run().hint == "sudo apt install usbmuxd")
    }

    @Test func `a file that is not a socket is distinguished from a missing file`() {
        #expect(UnixSocketStatus(path: "/dev/null").state == .notASocket)
        #expect(UnixSocketStatus(path: "/nonexistent/x").state == .absent)
    }

    @Test func `a check is one line, followed by a line with its hint`() {
        let check = Check(name: "usbmuxd", verdict: .warn, detail: "not installed", hint: "apt install usbmuxd")

        #expect(
            DoctorCommand.text(check, isColoured: false)
                == "warn  usbmuxd    not installed\n      try: apt install usbmuxd"
        )
    }

    @Test func `sources that are turned off are not checked again on the machine`() {
        let off = [
            SourceStatus(name: "bonjour", state: .off, detail: "turned off by discovery.enabled = false"),
            SourceStatus(name: "usbmuxd", state: .off, detail: "turned off by devices.enabled = false"),
        ]
        let warning = Check(name: "mdns", verdict: .warn, detail: "nobody answers")

        let checks = DoctorReport(
            broker: off.map(BrokerCheck.source),
            sources: off,
            usbmuxd: { [warning] },
            network: { [warning] }
        ).checks

        #expect(checks.map(\.name) == ["bonjour", "usbmuxd"])
        #expect(checks.first?.detail == "turned off by discovery.enabled = false")
    }

    @Test(arguments: [
        ("sudo systemctl restart avahi-daemon", "service avahi-daemon restart"),
        ("sudo systemctl start dbus avahi-daemon", "service dbus start && service avahi-daemon start"),
        ("sudo rm /x && sudo systemctl restart usbmuxd", "rm /x && service usbmuxd restart"),
        ("sudo systemctl restart patchbayd", "kill 7 && patchbayd"), ("sudo chmod 0666 /x", "chmod 0666 /x"),
        ("patchbay remote off", "patchbay remote off"), ("sudo timedatectl set-ntp true", "apt install chrony"),
    ])
    func `a command for root in a container uses neither sudo nor systemctl`(hint: String, command: String) {
        let machine = MachineCommand(broker: 7, isRoot: true, hasSudo: false, hasSystemd: false)

        #expect(machine.adapted(hint) == command)
    }

    @Test func `a command for another user asks for the right of root`() {
        let hint = "sudo systemctl restart avahi-daemon"

        #expect(MachineCommand(isRoot: false, hasSudo: true, hasSystemd: true).adapted(hint) == hint)
        let without = MachineCommand(isRoot: false, hasSudo: false, hasSystemd: true).adapted(hint)
        #expect(without == "su -c 'systemctl restart avahi-daemon'")
    }

    @Test func `a finding has one command, also where the broker describes several steps`() {
        let flood = SourceStatus(
            name: "bonjour",
            state: .ok,
            detail: "9 dropped",
            hint: "find the source with `avahi-browse -a`, or narrow discovery.interfaces"
        )

        #expect(BrokerCheck.source(flood).hint == "avahi-browse -a")
        #expect(BrokerCheck.storage("endpoints.json could not be written").hint == "patchbay logs -p warning")
    }
}
