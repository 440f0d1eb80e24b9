import FoundationEssentials
import TestSupport
import Testing

/// Machines without free descriptors, disk space or IPv6.
@Suite(.needs(.root, .namespaces, .python), .scratchFolder) struct ResourceExhaustionTests {
    private let scratch = ScratchFolder.current

    @Test func `without free descriptors the broker stays idle, and it accepts again when some are free`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch, commandPrefix: ["prlimit", "--nofile=64:64", "--"])

        let words = try await Callers.run("flood", broker.socket, "\(broker.daemon.processID)", "100", in: scratch)

        let burnt = words.first.flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Double($0) }
        #expect(try #require(burnt) < 0.3, "\(words)")
        let pause = words.last?.split(separator: " ").dropFirst(2).first.flatMap { Double($0) }
        #expect(try #require(pause) < 0.8, "\(words)")
        #expect(broker.daemon.log.contains("cannot accept connections; clients wait"))
    }

    @Test func `a full disk fails only requests that store data, until there is room`()
        async throws
    {
        let state = try scratch.makeFolder("state")
        let filler = "\(state)/filler"
        let full = """
            mount -t tmpfs -o size=1m,mode=700 none \(state)
            # Once with room: what says who may come in must be there, or nobody could.
            "$@" 2>\(state)/log & until grep -q 'the API is open' \(state)/log; do sleep 0.05; done; kill $!; wait $! || :
            rm -f \(state)/endpoints*
            dd if=/dev/zero of=\(filler) bs=1k 2>/dev/null || :
            exec "$@"
            """
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: ["unshare", "--mount", "sh", "-ec", full, "sh"]
        )

        let refusal = try await broker.start("add", "Lab", "127.0.0.1:9")
        #expect(try await refusal.exitStatus() == .exited(75))
        #expect(refusal.log.contains("No space left on device"), "\(refusal.log)")
        #expect(try await broker.ask("list").joined().contains("No endpoints."))
        try await broker.daemon.waitForLine("the endpoints cannot be saved now")

        try FileManager.default.removeItem(atPath: "/proc/\(broker.daemon.processID)/root\(filler)")
        try await broker.daemon.waitForLine("the endpoints are saved again")
        #expect(try await broker.ask("add", "Lab", "127.0.0.1:9").first == "Added lab.")
    }

    @Test func `changes that cannot be saved are refused and reported, even if a small file would fit`() async throws {
        let state = try scratch.makeFolder("state")
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: [
                "unshare", "--mount", "sh", "-ec",
                "mount -t tmpfs -o size=1m,mode=700 none \(state); exec \"$@\"", "sh",
            ],
            configuration: "[api]\nport = \(port)\n"
        )
        // By now the endpoint list takes three pages and the file of added endpoints one.
        for number in 0..<30 { _ = try await broker.ask("add", "Lab \(number)", "127.0.0.1:9") }
        let filler = "/proc/\(broker.daemon.processID)/root\(state)/filler"
        let fill = "dd if=/dev/zero of=\(filler) bs=1k 2>/dev/null; truncate -s -8192 \(filler)"
        _ = try await Program.run("sh", ["-c", fill], in: scratch)

        // The command may succeed or fail: the list may have been written since the disk is full.
        _ = try await broker.start("add", "Last", "127.0.0.1:9").exitStatus()
        try await broker.daemon.waitForLine("the endpoints cannot be saved now")

        for words in [["add", "Late", "127.0.0.1:9"], ["forward", "tcp:0", "--endpoint", "lab-0", "--detach"]] {
            let refusal = try await broker.start(words)
            #expect(try await refusal.exitStatus() == .exited(75))
            #expect(refusal.log.contains("endpoints.json could not be written"), "\(refusal.log)")
        }
        let status = try await broker.start("status")
        #expect(try await status.exitStatus() == .exited(1))
        #expect(status.log.contains("problem: state: ") && status.log.contains("endpoints.json"), "\(status.log)")
        let doctor = try await broker.start("doctor")
        #expect(try await doctor.exitStatus() == .exited(1))
        #expect(doctor.log.contains("endpoints.json could not be written"), "\(doctor.log)")
        let health = ["-sS", "http://127.0.0.1:\(port)/health"]
        let degraded = try await Program.run("curl", health, in: scratch).joined()
        #expect(degraded.contains("\"status\":\"degraded\"") && !degraded.contains(state), "\(degraded)")

        try FileManager.default.removeItem(atPath: filler)
        try await broker.daemon.waitForLine("the endpoints are saved again")
        #expect(try await broker.ask("add", "Late", "127.0.0.1:9").first == "Added late.")
        #expect(try await !broker.ask("status").joined().contains("problem: state"))
        #expect(try await Program.run("curl", health, in: scratch).joined().contains("\"status\":\"ok\""))
    }

    @Test func `without IPv6 a tunnel listens on IPv4 and works`() async throws {
        let noIPv6 = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up; exec \"$@\""
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: ["unshare", "--net", "sh", "-ec", noIPv6, "sh"]
        )
        let inside = ["--target", "\(broker.daemon.processID)", "--net", "--"]
        let server = try await Program(
            "nsenter",
            inside + ["python3", "-um", "http.server", "8080", "--bind", "127.0.0.1"],
            in: scratch
        )
        try await server.waitForLine("Serving HTTP")
        _ = try await broker.ask("add", "Lab", "127.0.0.1:8080")

        let opened = try await broker.ask("forward", "0", "--endpoint", "lab", "--detach")

        let address = try #require(opened.first?.split(separator: " ").first)
        #expect(opened.count == 1 && address.hasPrefix("127.0.0.1:"), "\(opened)")
        let page = try await Program.run("nsenter", inside + ["curl", "-sS", "http://\(address)/"], in: scratch)
        #expect(page.joined().contains("Directory listing"))
    }

    @Test func `a client that disconnects before the response leaves no ephemeral tunnel or advertisement`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch)

        #expect(try await Callers.run("vanish", broker.socket, "40", in: scratch) == ["left: 0 0"])
    }
}
