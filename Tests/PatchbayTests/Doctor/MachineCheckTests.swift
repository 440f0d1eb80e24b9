import Foundation
import Model
import Samples
import TestSupport
import Testing

@testable import patchbay

/// Versions, ports, files, the clock and limits.
@Suite(.scratchFolder) struct MachineCheckTests {
    private let scratch = ScratchFolder.current

    @Test func `the versions of all programs and of the kernel are one line`() async {
        let check = await VersionCheck(
            broker: "9.9",
            readKernel: { "Linux 6.1" },
            readVersion: { $0.name == "usbmuxd" ? nil : "0.8" }
        ).run()

        #expect(check.verdict == .ok)
        #expect(check.detail.hasSuffix("patchbayd 9.9, avahi-daemon 0.8, usbmuxd not installed, Linux 6.1"))
    }

    @Test func `lists of libusbmuxd and of the broker that differ are a finding with the phone`() {
        #expect(LibusbmuxdCheck(devices: ["a"], readDevices: { ["a"] }).run().verdict == .ok)
        #expect(LibusbmuxdCheck(devices: ["a"], readDevices: { nil }).run().verdict == .ok)
        let unknown = LibusbmuxdCheck(devices: [], readDevices: { ["a"] }).run()
        #expect(unknown.hint == "sudo systemctl restart patchbayd" && unknown.detail.contains("lists a,"))
        let missing = LibusbmuxdCheck(devices: ["b"], readDevices: { [] }).run()
        #expect(missing.hint == "sudo systemctl restart usbmuxd" && missing.detail.contains("lists b,"))
    }

    private func ports(
        broker: pid_t?,
        _ owners: [KernelSockets.Owner]?,
        tunnels: [Tunnel] = [],
        range: String = "32768\t60999\n"
    ) -> [Check] {
        PortCheck(
            apiPort: 7_282,
            broker: broker,
            failedTunnels: tunnels,
            readOwners: { _ in owners },
            readRange: { range }
        ).run()
    }

    @Test func `a port of the API that another program uses is a finding with the program`() {
        let broker = KernelSockets.Owner(process: 7, name: "patchbayd")
        let other = KernelSockets.Owner(process: 8, name: "nginx")

        #expect(ports(broker: 7, [broker]).map(\.verdict) == [.ok, .ok])
        #expect(ports(broker: nil, nil).map(\.verdict) == [.ok, .ok])
        #expect(ports(broker: 7, nil).first?.hint == "sudo systemctl restart patchbayd")
        let taken = ports(broker: 7, [other]).first
        #expect(taken?.hint == "set another api.port in patchbay.toml, or api.tcp = false")
        #expect(taken?.detail.hasPrefix("nginx (process 8) uses port 7282") == true)
        #expect(ports(broker: 7, []).first?.detail == "the broker listens on port 7282")
        #expect(ports(broker: nil, []).first?.detail.hasPrefix("a program of another user listens") == true)
        let second = ports(broker: 7, [.init(process: 8, name: "patchbayd")]).first
        #expect(second?.detail.hasPrefix("another patchbayd (process 8) uses port 7282") == true)
    }

    @Test func `a tunnel whose port is taken is a finding with the program`() throws {
        let local = ListenAddress.tcp(host: "127.0.0.1", port: 8_080)
        let target = TunnelTarget.endpoint("shop")
        let tunnel = Tunnel(
            id: "t1",
            spec: TunnelSpec(local: local, target: target),
            owner: 0,
            state: .failed(reason: "in use"),
            createdAt: Date()
        )
        let taken = ports(broker: nil, [.init(process: 9, name: "python3")], tunnels: [tunnel]).dropFirst().first
        #expect(taken?.detail == "python3 (process 9) uses port 8080; tunnel t1 waits for it")
        #expect(taken?.hint == "patchbay tunnels rm t1")

        let free = ports(broker: nil, nil, tunnels: [tunnel]).dropFirst().first
        #expect(free?.hint == "patchbay tunnels rm t1" && free?.detail.hasSuffix(": in use") == true)
    }

    @Test func `a range with fewer ports than tunnels is a finding`() {
        let check = ports(broker: nil, nil, range: "60000 60100").last

        #expect(check?.hint == "sudo sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"")
    }

    @Test func `the state folder is that of the configuration, of the service or of the user`() {
        func path(_ configured: String?, _ socket: String, user: UInt32 = 1_000) -> String? {
            StateFolderCheck.path(
                configured: configured,
                socket: socket,
                user: user,
                environment: ["HOME": "/home/dev"]
            )
        }
        #expect(path(nil, "/x/p.sock", user: 0) == "/var/lib/patchbay")
        #expect(path("/x", "/run/patchbay/patchbay.sock") == "/x")
        #expect(path(nil, "/run/patchbay/patchbay.sock") == "/var/lib/patchbay")
        #expect(path(nil, "/run/user/1/patchbay/patchbay.sock") == "/home/dev/.local/state/patchbay")
    }

    @Test func `a command fixes a state folder and a state file that others can open`() async throws {
        let folder = try scratch.makeFolder("state")
        let file = try scratch.write("x", to: "state/audit.jsonl")
        for (path, mode) in [(folder, 0o755), (folder, 0o777), (file, 0o644)] {
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
            #expect(StateFolderCheck(path: folder).run().verdict == .ok)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)

            let finding = StateFolderCheck(path: folder).run()

            #expect(finding.verdict == (mode == 0o755 ? .warn : .fail))
            let command = try #require(finding.hint).replacing("sudo ", with: "")
            _ = try await Program.run("sh", ["-c", command], in: scratch)
            #expect(StateFolderCheck(path: folder).run().verdict == .ok)
        }
        #expect(StateFolderCheck(path: "\(folder)/missing").run().verdict == .ok)
    }

    @Test func `a path in a command is one word of the shell`() async throws {
        #expect("/var/lib/patchbay-1.0".shellQuoted == "/var/lib/patchbay-1.0")
        let folder = try scratch.makeFolder("a;touch 'x';$b")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        let command = try #require(StateFolderCheck(path: folder).run().hint).replacing("sudo ", with: "")

        _ = try await Program.run("sh", ["-c", command], in: scratch)

        #expect(StateFolderCheck(path: folder).run().verdict == .ok)
    }

    @Test func `a symbolic link as state folder is a finding without a command that follows the link`() async throws {
        let folder = try scratch.makeFolder("open")
        let link = scratch.file("state")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)

        let finding = StateFolderCheck(path: link).run()

        #expect(finding.verdict == .warn && finding.detail.contains("is a symbolic link"))
        #expect(finding.hint == "set broker.state_directory to the folder itself")
    }

    @Test func `a broker that may not be asked is not reported as stopped`() async {
        func detail(isRunning: Bool) async -> String {
            await VersionCheck(
                broker: nil,
                isRunning: isRunning,
                readKernel: { "Linux 6.1" },
                readVersion: { _ in nil }
            ).run().detail
        }
        #expect(await detail(isRunning: true).contains("patchbayd of unknown version,"))
        #expect(await detail(isRunning: false).contains("patchbayd not running,"))
    }

    @Test func `a clock without a time server is a finding, and so is one that starts in 1970`() {
        #expect(ClockCheck(readIsSynchronized: { true }).run().verdict == .ok)
        #expect(ClockCheck(readIsSynchronized: { false }).run().hint == "sudo timedatectl set-ntp true")
        let early = ClockCheck(readTime: { Date(timeIntervalSince1970: 60) }, readIsSynchronized: { true }).run()
        #expect(early.verdict == .warn && early.detail.contains("1970-01-01T00:01:00"))
    }

    @Test func `a limit of open files below the configured connections is a finding with a command`() async throws {
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024      4096      files \n"
        for process in ["5", "6"] {
            try scratch.makeFolder("proc/\(process)")
            try scratch.write(limits, to: "proc/\(process)/limits")
        }
        try scratch.write("usbmuxd\n", to: "proc/6/comm")
        try scratch.write("0::/system.slice/patchbayd.service\n", to: "proc/5/cgroup")
        let sockets = KernelSockets(proc: scratch.file("proc"))
        func checks(_ connections: Int, _ streams: Int) -> [Check] {
            DescriptorCheck(broker: 5, connections: connections, streams: streams, sockets: sockets).run()
        }

        #expect(checks(100, 100).map(\.verdict) == [.ok, .ok])
        let low = checks(2_000, 1_000)
        #expect(low.map(\.verdict) == [.warn, .warn])
        #expect(low[0].hint?.contains("LimitNOFILE=65536") == true)
        #expect(low[1].hint == "sudo prlimit --pid 6 --nofile=65536:65536")
        try FileManager.default.removeItem(atPath: scratch.file("proc/5/cgroup"))
        let manual = checks(2_000, 100).first?.hint
        #expect(manual == "sudo prlimit --pid $$ --nofile=65536 && kill 5 && patchbayd")

        for (process, words) in [("7", "adb\0shell\0"), ("8", "adb\0-L\0tcp:5037\0fork-server\0server\0")] {
            try scratch.makeFolder("proc/\(process)")
            try scratch.write(limits, to: "proc/\(process)/limits")
            try scratch.write("adb\n", to: "proc/\(process)/comm")
            try scratch.write(words, to: "proc/\(process)/cmdline")
        }
        #expect(checks(100, 1_000).last?.hint == "sudo prlimit --pid 8 --nofile=65536:65536")
    }
}
