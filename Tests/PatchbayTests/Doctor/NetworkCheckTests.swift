import Glibc
import Testing

@testable import patchbay

/// Programs and interfaces of multicast DNS.
@Suite struct NetworkCheckTests {
    private static let table = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
          10: 00000000:14E9 00000000:0000 07 00000000:00000000 00:00000000 00000000   104        0 23456 2 0000 0
          11: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   104        0 23457 2 0000 0
          12: 00000000000000000000000000000000:14E9 00000000000000000000000000000000:0000 0A 0:0 00:0 0 104 0 23458 2 0000 0
        garbage
        """

    @Test func `the socket inodes of a port are parsed from the kernel's table`() {
        #expect(KernelSockets.inodes(port: 5353, in: Self.table) == [23456, 23458])
        #expect(KernelSockets.inodes(port: 5353, state: "0A", in: Self.table) == [23458])
        #expect(KernelSockets.inodes(port: 5353, in: "").isEmpty)
    }

    private func check(_ names: String...) -> [Check] {
        let owners = names.enumerated().map { KernelSockets.Owner(process: pid_t($0.offset + 1), name: $0.element) }
        return MulticastCheck { owners }.run()
    }

    @Test func `Avahi alone is ok, and so are programs that only ask`() {
        #expect(check("avahi-daemon", "chrome").map(\.verdict) == [.ok])
        #expect(check().map(\.verdict) == [.ok])
        #expect(MulticastCheck { nil }.run().map(\.hint) == ["sudo systemctl start avahi-daemon"])
    }

    @Test func `each other responder is a finding with the command that turns it off`() {
        let checks = check("avahi-daemon", "systemd-resolve", "mdnsd", "homeassistant")

        #expect(checks.map(\.verdict) == [.warn, .warn, .warn])
        #expect(checks[0].hint?.contains("MulticastDNS=no") == true)
        #expect(checks[0].hint?.contains("systemctl restart systemd-resolved") == true)
        #expect(checks[1].hint == "sudo systemctl disable --now mdnsd")
        #expect(checks[2].hint == "turn off multicast DNS in the settings of homeassistant")
        #expect(checks[2].detail.contains("homeassistant (process 4)"))
    }

    private func check(_ interface: InterfaceCheck.Interface, avahi: Bool = true) -> [Check] {
        InterfaceCheck(
            isAvahiRunning: avahi,
            configuration: AvahiConfiguration(path: "/nonexistent/avahi.conf"),
            readInterfaces: { [.init(name: "lo", isLoopback: true), interface] }
        ).run()
    }

    @Test func `an interface without multicast is a finding, and so is one that Avahi does not use`() {
        #expect(check(.init(name: "eth0")).map(\.verdict) == [.ok])
        let deaf = check(.init(name: "eth0", hasMulticast: false))
        #expect(deaf.map(\.hint) == ["sudo ip link set dev eth0 multicast on"])
        let unused = check(.init(name: "eth0", isMember: false))
        #expect(unused.map(\.hint) == ["sudo systemctl restart avahi-daemon"])
        #expect(check(.init(name: "eth0", isMember: false), avahi: false).map(\.verdict) == [.ok])
    }

    @Test func `interfaces without a network are no findings`() {
        let interfaces: [InterfaceCheck.Interface] = [
            .init(name: "wg0", isPointToPoint: true, hasMulticast: false), .init(name: "eth1", isUp: false),
            .init(name: "br0", hasAddress: false),
        ]
        for interface in interfaces {
            let checks = check(interface)
            #expect(checks.map(\.verdict) == [.ok] && checks[0].detail.hasPrefix("no network is connected"))
        }
    }

    @Test func `the interfaces of this machine include the loopback interface`() {
        #expect(InterfaceCheck.interfaces().contains { $0.name == "lo" && $0.isLoopback })
    }

    @Test func `members of Avahi's group are parsed from the kernel's table`() {
        let table = """
            Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter
            1\tlo        :     1      V3
            \t\t\t\t010000E0     1 0:00000000\t\t0
            4\teth0      :     2      V3
            \t\t\t\tFB0000E0     1 0:00000000\t\t0
            \t\t\t\t010000E0     1 0:00000000\t\t0
            """

        #expect(InterfaceCheck.members(in: table) == ["eth0"])
    }
}
