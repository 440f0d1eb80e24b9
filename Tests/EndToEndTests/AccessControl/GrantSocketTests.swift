import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Unix sockets for one grant each (`patchbay pair --socket`).
@Suite(.needs(.root), .scratchFolder) struct GrantSocketTests {
    private let scratch = ScratchFolder.current

    /// The only member that these tests need of a grant.
    private struct Created: Decodable {
        struct Grant: Decodable { let id: String }

        let grant: Grant
    }

    private static func pair(_ broker: RunningBroker, _ arguments: String...) async throws -> String {
        let pair = try await broker.start(["pair", "--json", "--socket"] + arguments)
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        return try JSONDecoder().decode(Created.self, from: Data(pair.output.joined().utf8)).grant.id
    }

    /// Returns the status of a request over a socket, or the exit status of curl.
    private static func status(
        _ path: String,
        over socket: String,
        _ options: [String] = [],
        prefix: [String] = ["env"],
        in scratch: ScratchFolder
    ) async throws -> String {
        let curl = [
            "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "10", "--unix-socket", socket,
        ]
        let words = prefix + curl + options + ["http://localhost\(path)"]
        let program = try await Program(words[0], Array(words.dropFirst()), in: scratch)
        let exit = try await program.exitStatus()
        return exit == .exited(0) ? program.output.joined() : "\(exit)"
    }

    @Test func `every client of the socket has the grant, and uid 0 on it is no owner`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent/patchbay.sock"
        let grant = try await Self.pair(broker, socket, "--scope", "registry.read")

        #expect(try await Self.status("/v1/endpoints", over: socket, in: scratch) == "200")
        for path in ["/v1/remote", "/v1/configuration", "/v1/audit", "/v1/invites", "/v1/tunnels"] {
            #expect(try await Self.status(path, over: socket, in: scratch) == "403", "\(path)")
            #expect(try await Self.status(path, over: broker.socket, in: scratch) == "200", "\(path)")
        }
        let list = try await broker.start("grants", "--json", "--socket", socket)
        #expect(try await list.exitStatus() == .exited(0))
        #expect(list.log.contains(grant))
        // Neither a token nor a request for one changes the client.
        let token = ["-H", "Authorization: Bearer pbg_x"]
        #expect(try await Self.status("/v1/endpoints", over: socket, token, in: scratch) == "400")
        let body = #"{"name":"x","permissions":{"scopes":["admin"],"selector":"all"}}"#
        let post = ["-H", "Content-Type: application/json", "-d", body]
        #expect(try await Self.status("/v1/access-requests", over: socket, post, in: scratch) == "403")
    }

    @Test(.needs(.namespaces)) func `uid 0 of a user namespace is no owner on the socket of a grant`() async throws {
        let user = "64001"
        let asUser = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        try await Program.run("chown", [user, scratch.path], in: scratch)
        try await Program.run("chmod", ["755", scratch.path], in: scratch)
        let broker = try await RunningBroker(in: scratch, commandPrefix: asUser, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent/patchbay.sock"
        let words = asUser + ["env", "PATCHBAY_SOCKET=\(broker.socket)", try Executable.built("patchbay")]
        let pair = try await Program(
            words[0],
            Array(words.dropFirst()) + ["pair", "--socket", socket],
            in: scratch,
            environment: ["HOME": scratch.path]
        )
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        let asContainer = asUser + ["unshare", "--user", "--map-root-user"]
        #expect(try await Self.status("/v1/remote", over: broker.socket, prefix: asContainer, in: scratch) == "200")
        #expect(try await Self.status("/v1/remote", over: socket, prefix: asContainer, in: scratch) == "403")
        #expect(try await Self.status("/v1/endpoints", over: socket, prefix: asContainer, in: scratch) == "200")
    }

    @Test func `the service opens sockets in a folder that other users cannot enter, and names it`() async throws {
        let user = "64001"
        let (tunnels, grants) = (try scratch.makeFolder("run/tunnels"), try scratch.makeFolder("run/grants"))
        try await Program.run("chown", ["-R", user, scratch.path], in: scratch)
        try await Program.run("chmod", ["755", scratch.path, "\(scratch.path)/run"], in: scratch)
        try await Program.run("chmod", ["750", tunnels, grants], in: scratch)
        let asService = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: ["env", "RUNTIME_DIRECTORY=\(grants):\(tunnels)"] + asService,
            configuration: "[api]\ntcp = false\n"
        )
        let refused = try await broker.start("pair", "--socket", "\(scratch.path)/agent/patchbay.sock")
        #expect(try await refused.exitStatus() != .exited(0))
        let modes = try await Program.run("stat", ["-c", "%a", tunnels, grants], in: scratch)
        #expect(modes == ["755", "750"])
        let path = "\(grants)/agent/patchbay.sock"
        #expect(refused.log.contains("try: patchbay pair --socket \(path)"), "\(refused.log)")

        _ = try await Self.pair(broker, path)
        #expect(try await Self.status("/v1/endpoints", over: path, in: scratch) == "200")
        let asOther = ["setpriv", "--reuid=64002", "--regid=64002", "--clear-groups"]
        let other = try await Self.status("/v1/endpoints", over: path, prefix: asOther, in: scratch)
        #expect(other != "200")
    }

    @Test func `the socket ends with its grant, and its open connections too`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent.sock"
        let grant = try await Self.pair(broker, socket)
        let watch = try await broker.start("watch", "--socket", socket)
        let stream = try await Program(
            "curl",
            ["-sSN", "--unix-socket", socket, "http://localhost/v1/events"],
            in: scratch
        )
        try await stream.waitForLine("event: snapshot")

        _ = try await broker.ask("revoke", grant)
        #expect(try await stream.exitStatus() != .exited(0))
        #expect(!FileManager.default.fileExists(atPath: socket))
        watch.terminate()
        _ = try await watch.exitStatus()
    }

    @Test func `a client of the socket can end its own grant`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent.sock"
        _ = try await Self.pair(broker, socket)
        let end = ["-X", "DELETE"]
        #expect(try await Self.status("/v1/grants/self", over: socket, end, in: scratch) == "200")
        #expect(!FileManager.default.fileExists(atPath: socket))
        #expect(try await broker.ask("grants").first?.hasPrefix("No valid grants.") == true)
    }

    @Test func `the broker opens the socket again after a restart and after kill -9`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent/patchbay.sock"
        _ = try await Self.pair(broker, socket)
        for isKilled in [false, true] {
            try await broker.restart(isKilled: isKilled)
            try await eventually("the socket answers") {
                try await Self.status("/v1/endpoints", over: socket, in: scratch) == "200"
            }
        }
    }

    @Test(.needs(.namespaces)) func `a mounted folder follows a restart of the broker, and a mounted file does not`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let folder = "\(scratch.path)/agent"
        _ = try await Self.pair(broker, "\(folder)/patchbay.sock")
        let (mounted, file) = (try scratch.makeFolder("mounted"), try scratch.write("", to: "file"))
        let script = """
            mount --make-rprivate / && mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" &&
            mount --bind "$1/patchbay.sock" "$3" && echo mounted && while read -r path; do
                curl -sS -o /dev/null -w '%{http_code}\\n' --unix-socket "$path" http://localhost/v1/endpoints || echo none
            done
            """
        let container = try await Program(
            "unshare",
            ["--mount", "sh", "-c", script, "sh", folder, mounted, file],
            in: scratch,
            input: .pipe
        )
        try await container.waitForLine("mounted")
        func answer(over socket: String, _ expected: String) async throws {
            let start = container.transcript.soFar.count
            try container.write("\(socket)\n")
            try await container.waitForLine(expected, from: start)
        }
        try await answer(over: "\(mounted)/patchbay.sock", "200")
        try await answer(over: file, "200")
        try await broker.restart()
        try await eventually("the socket answers") {
            try await Self.status("/v1/endpoints", over: "\(folder)/patchbay.sock", in: scratch) == "200"
        }
        try await answer(over: "\(mounted)/patchbay.sock", "200")
        try await answer(over: file, "none")
    }

    @Test(.needs(.podman)) func `root in a container is the grant`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let folder = "\(scratch.path)/agent"
        _ = try await Self.pair(broker, "\(folder)/patchbay.sock")
        let script = """
            id -u; for path in endpoints remote; do
                curl -sS -o /dev/null -w '%{http_code}\\n' --unix-socket /run/patchbay/patchbay.sock http://localhost/v1/$path
            done
            """
        var container = try await Program(
            "podman",
            Podman.arguments + ["--volume", "\(folder):/run/patchbay:ro", "--rootfs", "/:O", "sh", "-c", script],
            in: scratch
        )
        // podman-run(1): 125 is an error of podman, for example if the machine's file system allows no overlay. The
        // namespaces of a container are then made without podman.
        if try await container.exitStatus() == .exited(125) {
            let mount = "mkdir -p /run/patchbay && mount --bind \(folder) /run/patchbay && \(script)"
            container = try await Program(
                "unshare",
                ["--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /run && \(mount)"],
                in: scratch
            )
        }
        #expect(try await container.exitStatus() == .exited(0), "\(container.log)")
        #expect(container.output == ["0", "200", "403"], "\(container.log)")
    }

    @Test func `a second grant on a path is refused with the ID of the first one`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let socket = "\(scratch.path)/agent.sock"
        let grant = try await Self.pair(broker, socket)
        let second = try await broker.start("pair", "--socket", socket)
        #expect(try await second.exitStatus() != .exited(0))
        #expect(second.log.contains("patchbay revoke \(grant)"), "\(second.log)")
    }

    @Test func `a path that cannot be used leaves no grant and names the next step`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let file = try scratch.write("mine", to: "file")
        for (path, text) in [
            (broker.socket, "is in use"), (file, "is not a socket"), ("/proc/none/a.sock", "mkdir -p /proc/none"),
        ] {
            let pair = try await broker.start("pair", "--socket", path)
            #expect(try await pair.exitStatus() != .exited(0))
            #expect(pair.log.contains(text) && pair.log.contains("try: "), "\(pair.log)")
        }
        #expect(try await broker.ask("grants").first?.hasPrefix("No valid grants.") == true)
        #expect(try String(contentsOf: URL(filePath: file), encoding: .utf8) == "mine")
    }
}
