import Foundation
import TestSupport
import Testing

@testable import patchbay

/// Avahi's configuration, its limits, and the commands that change them.
@Suite(.scratchFolder) struct AvahiCheckTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [
        ("[wide-area]\nenable-wide-area=yes\n", true), ("[wide-area]\nenable-wide-area=no\n", false),
        ("[wide-area]\n enable-wide-area = no \n", false), ("[server]\nuse-ipv4=yes\n", true),
        ("[wide-area]\n#enable-wide-area=no\n", true), ("[server]\nenable-wide-area=no\n", true), ("", true),
    ])
    func `wide-area lookups are on unless the section turns them off`(text: String, isOn: Bool) async throws {
        let file = try scratch.write(text, to: "avahi.conf")
        #expect(AvahiCheck(configuration: AvahiConfiguration(path: file)).enablesWideArea == isOn)
        #expect(!AvahiCheck(configuration: AvahiConfiguration(path: "/nonexistent/avahi.conf")).enablesWideArea)
    }

    @Test(arguments: [
        "[server]\ncache-entries-max=10\n[publish]\ncache-entries-max=7\n", "[server]\n#cache-entries-max=10\n",
        "[publish]\nx=y\n", "",
    ])
    func `the command that fixes a limit sets the key in its section alone`(text: String) async throws {
        let file = try scratch.write(text, to: "avahi.conf")
        let before = AvahiConfiguration(path: file)

        let edit = before.edit(setting: "cache-entries-max", to: "9000", in: "server")
        _ = try await Program.run("sh", ["-c", edit], in: scratch)

        let after = AvahiConfiguration(path: file)
        #expect(after.number(of: "cache-entries-max", in: "server") == 9_000)
        let other = [before, after].map { $0.value(of: "cache-entries-max", in: "publish") }
        #expect(other[0] == other[1])
        let command = before.command(setting: "cache-entries-max", to: "9000", in: "server")
        #expect(command == "sudo sh -c '\(edit)' && sudo systemctl restart avahi-daemon")
    }

    @Test func `limits above the number of services are ok, and each lower one is a finding with a command`()
        async throws
    {
        let missing = AvahiConfiguration(path: scratch.file("missing"))
        let few = AvahiLimitCheck(services: 100, advertisements: 1, types: 7, configuration: missing).run()
        #expect(few.map(\.verdict) == [.ok])
        #expect(few.first?.detail == "Avahi's limits suffice for 100 services and 1 advertisement")

        let many = AvahiLimitCheck(services: 1_000, advertisements: 1, types: 7, configuration: missing).run()
        #expect(many.map(\.verdict) == [.warn])
        #expect(many.first?.detail.contains("cache-entries-max is 4096, but 5000 are needed") == true)
        #expect(many.first?.hint?.contains("cache-entries-max=10000") == true)

        let file = try scratch.write(
            "[server]\nobjects-per-client-max=5\nentries-per-entry-group-max=0\n",
            to: "avahi.conf"
        )
        let low = AvahiLimitCheck(
            services: 1,
            advertisements: 1,
            types: 7,
            configuration: AvahiConfiguration(path: file)
        ).run()
        #expect(low.map(\.verdict) == [.warn, .warn])
        #expect(low.compactMap(\.hint).allSatisfy { $0.hasSuffix("sudo systemctl restart avahi-daemon") })
    }

    @Test(arguments: [
        ([:], "/run/dbus/system_bus_socket"),
        (["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x/bus,guid=1;tcp:host=y"], "/x/bus"),
        (["DBUS_SYSTEM_BUS_ADDRESS": "tcp:host=y"], nil),
        (["DBUS_SYSTEM_BUS_ADDRESS": ""], "/run/dbus/system_bus_socket"),
    ])
    func `the bus path comes from DBUS_SYSTEM_BUS_ADDRESS`(environment: [String: String], bus: String?) {
        #expect(AvahiCheck.bus(environment) == bus)
    }

    @Test func `for a custom bus that is not running only the bus is reported`() {
        let checks = AvahiCheck(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"]).run()

        #expect(checks.map(\.name) == ["dbus"])
        #expect(checks.first?.detail.contains("/nonexistent/bus") == true)
    }
}
