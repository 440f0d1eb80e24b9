import FoundationEssentials
import TestSupport
import Testing

@Suite(.needs(.systemd), .scratchFolder) struct UnitFileTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [["patchbayd.service", "patchbayd.socket", "patchbayd-tcp.socket"], ["user/patchbayd.service"]])
    func `systemd-analyze verifies the units without a warning`(names: [String]) async throws {
        try scratch.makeFolder("user")
        let paths = try names.map { name in
            // The program in ExecStart= must exist; a stand-in replaces it on this machine.
            try scratch.write(unit(name).replacing("/usr/bin/patchbayd", with: "/bin/true"), to: name)
        }
        let manager = names[0].hasPrefix("user/") ? "--user" : "--system"

        let analyze = try await Program(
            "systemd-analyze",
            ["verify", manager, "--man=no"] + paths,
            in: scratch,
            environment: ["XDG_RUNTIME_DIR": scratch.path]
        )

        // systemd-analyze exits with 0 even for unknown keys; only its output shows them.
        #expect(try await analyze.exitStatus(within: .seconds(30)) == .exited(0))
        for await _ in analyze.transcript.elements() {}
        #expect(analyze.log == "")
    }

    @Test func `the service has an exposure level of at most 1.5`() async throws {
        let lines = try await Program.run(
            "systemd-analyze",
            ["security", "--offline=true", "--threshold=15", folder + "/patchbayd.service"],
            in: scratch
        )

        #expect(lines.contains { $0.contains("Overall exposure level") })
    }

    @Test func `systemd-sysusers can create the service's user`() async throws {
        let root = try scratch.makeFolder("root")
        try scratch.makeFolder("root/etc")

        try await Program.run("systemd-sysusers", ["--root=\(root)", folder + "/patchbay.sysusers"], in: scratch)

        let users = try String(contentsOf: URL(filePath: "\(root)/etc/passwd"), encoding: .utf8)
        #expect(users.contains("patchbay:"))
        #expect(try unit("patchbayd.service").contains("User=patchbay\n"))
        #expect(try unit("patchbayd.socket").contains("SocketUser=patchbay\n"))
    }

    @Test func `the folder of the control socket remains when the service stops`() throws {
        let service = try unit("patchbayd.service")
        let socket = try unit("patchbayd.socket")

        #expect(socket.contains("ListenStream=/run/patchbay/patchbay.sock\n"))
        // systemd.exec(5) removes a RuntimeDirectory= when the service stops, with the socket in it. Containers mount
        // the folder of grants.
        let folders = service.split(separator: "\n").filter { $0.hasPrefix("RuntimeDirectory") && !$0.contains("Mode") }
        #expect(folders == ["RuntimeDirectory=patchbay/tunnels patchbay/grants", "RuntimeDirectoryPreserve=restart"])
        // systemd sets this mode at each start, also on folders that exist. Other users must not enter the folder of
        // grants, and the daemon opens the folder of tunnels.
        #expect(service.contains("\nRuntimeDirectoryMode=0750\n"))
    }

    @Test func `the TCP socket unit listens on loopback only and is independent of the control socket`() throws {
        let tcp = try unit("patchbayd-tcp.socket").split(separator: "\n").filter { $0.hasPrefix("Listen") }

        #expect(tcp == ["ListenStream=127.0.0.1:7282", "ListenStream=[::1]:7282"])
        #expect(try unit("patchbayd.socket").split(separator: "\n").filter { $0.hasPrefix("Listen") }.count == 1)
        let service = try unit("patchbayd.service")
        #expect(service.contains("Requires=patchbayd.socket\n") && service.contains("Wants=patchbayd-tcp.socket\n"))
    }

    @Test(.needs(.python))
    func `an installation has every file in place, keeps a configuration, and can be removed`() async throws {
        let root = try scratch.makeFolder("root")
        // Real programs, because the installation strips them and asks them for the manual and the completions.
        let built = String(try Executable.built("patchbay").dropLast("/patchbay".count))
        let target = ["DESTDIR=\(root)", "PREFIX=/opt/pb", "BUILT=\(built)"]
        let install = ["-C", house, "install"] + target

        try await Program.run("make", install, in: scratch)
        let read = { (path: String) in try String(contentsOf: URL(filePath: "\(root)/\(path)"), encoding: .utf8) }
        let values = try read("etc/patchbay/patchbay.toml").split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(values.allSatisfy { $0.hasPrefix("[") && $0.hasSuffix("]") }, "every value is commented out")
        let daemon = "\(root)/opt/pb/bin/patchbayd"
        try await Program.run(
            daemon,
            ["--config", "\(root)/etc/patchbay/patchbay.toml", "--check-config"],
            in: scratch
        )
        try scratch.write("# mine\n", to: "root/etc/patchbay/patchbay.toml")
        try await Program.run("make", install, in: scratch)

        let files = try await Program.run("find", [root, "-type", "f", "-printf", "%m %P\\n"], in: scratch)
        #expect(
            files.sorted() == [
                "644 etc/patchbay/patchbay.toml",
                "644 opt/pb/lib/systemd/system/patchbayd-tcp.socket",
                "644 opt/pb/lib/systemd/system/patchbayd.service",
                "644 opt/pb/lib/systemd/system/patchbayd.socket",
                "644 opt/pb/lib/systemd/user/patchbayd.service",
                "644 opt/pb/lib/sysusers.d/patchbay.conf",
                "644 opt/pb/share/bash-completion/completions/patchbay",
                "644 opt/pb/share/doc/patchbay/README.md",
                "644 opt/pb/share/doc/patchbay/patchbay.example.toml",
                "644 opt/pb/share/fish/vendor_completions.d/patchbay.fish",
                "644 opt/pb/share/man/man1/patchbay.1",
                "644 opt/pb/share/man/man5/patchbay.toml.5",
                "644 opt/pb/share/man/man8/patchbayd.8",
                "644 opt/pb/share/patchbay/profiles/app-debug.toml",
                "644 opt/pb/share/patchbay/profiles/debugbridge.toml",
                "644 opt/pb/share/patchbay/profiles/devicekit.toml",
                "644 opt/pb/share/patchbay/profiles/mobilecli.toml",
                "644 opt/pb/share/patchbay/profiles/simlock.toml",
                "644 opt/pb/share/patchbay/profiles/webdriveragent.toml",
                "644 opt/pb/share/zsh/site-functions/_patchbay",
                "755 opt/pb/bin/patchbay",
                "755 opt/pb/bin/patchbayd",
            ]
        )
        #expect(try read("etc/patchbay/patchbay.toml") == "# mine\n")
        for unit in ["system", "user"].map({ "opt/pb/lib/systemd/\($0)/patchbayd.service" }) {
            #expect(try read(unit).contains("ExecStart=/opt/pb/bin/patchbayd"))
        }

        try await Program.run("make", ["-C", house, "uninstall"] + target, in: scratch)
        let rest = try await Program.run("find", [root, "-type", "f", "-printf", "%P\\n"], in: scratch)
        #expect(rest == ["etc/patchbay/patchbay.toml"])
    }

    private let house = String(#filePath.dropLast("/Tests/EndToEndTests/Service/UnitFileTests.swift".count))

    private var folder: String { house + "/systemd" }

    private func unit(_ name: String) throws -> String {
        try String(contentsOf: URL(filePath: "\(folder)/\(name)"), encoding: .utf8)
    }
}
