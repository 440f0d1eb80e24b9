import FoundationEssentials
import Glibc
import Model
import Synchronization
import TestSupport
import Testing

/// Flutter apps on the real Avahi: the adverts of the app and of Flutter's tool.
@Suite(.needs(.root, .namespaces, .avahi, .python), .timeLimit(.minutes(3)), .scratchFolder) struct FlutterTests {
    private let scratch = ScratchFolder.current
    private static let code = "EMYU73JbR-A="

    /// A Dart VM service that only counts: connections, and the bytes that clients send.
    private struct VMService {
        private final class Counts: Sendable {
            let connections = Atomic(0)
            let bytes = Atomic(0)
        }

        private let counts = Counts()
        private let server: LoopbackServer

        init(in scratch: ScratchFolder) throws {
            server = try LoopbackServer(in: scratch) { [counts] connection in
                counts.connections.add(1, ordering: .relaxed)
                var buffer = [UInt8](repeating: 0, count: 1_024)
                while true {
                    let count = recv(connection, &buffer, buffer.count, 0)
                    guard count > 0 else { return }
                    counts.bytes.add(count, ordering: .relaxed)
                }
            }
        }

        var port: UInt16 { server.port }
        var connections: Int { counts.connections.load(ordering: .relaxed) }
        var bytes: Int { counts.bytes.load(ordering: .relaxed) }
    }

    private static func announceApp(_ port: UInt16, _ code: String, on host: AvahiHost) async throws -> Program {
        try await host.start(
            "avahi-publish-service",
            ["com.example.shop", "_dartVmService._tcp", "\(port)", "authCode=\(code)"]
        )
    }

    private static func announceTool(_ port: UInt16, _ code: String, on host: AvahiHost) async throws -> Program {
        try await host.start(
            "avahi-publish-service",
            [
                "Flutter Tools on rig", "_flutter_devices._tcp", "\(port)", "hostname=rig",
                "ws_uri=ws://127.0.0.1:\(port)/\(code)/ws", "pid=4711", "target=Linux", "mode=debug",
                "target_platform=linux-x64", "epoch=1767225600000", "project_name=shop", "device_name=Linux",
                "device_id=linux", "flutter_version=3.44.0", "dart_version=3.12.0",
            ]
        )
    }

    /// Returns the output of a command once it contains a text.
    private static func shown(_ id: String, with text: String, by broker: RunningBroker) async throws -> String {
        try await eventually("show prints \(text)") {
            let lines = try await broker.ask("show", id).joined(separator: "\n")
            return lines.contains(text) ? lines : nil
        }
    }

    @Test func `both adverts on this host are one endpoint, whose URL only clients with the scope get`()
        async throws
    {
        let host = try await AvahiHost(in: scratch)
        let service = try VMService(in: scratch)
        let api = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            host: host,
            configuration: "[broker]\nlog_level = \"trace\"\n[api]\nport = \(api)\n"
        )
        let list = try await LiveList(of: broker)
        let tool = try await Self.announceTool(service.port, Self.code, on: host)
        let app = try await Self.announceApp(service.port, Self.code, on: host)
        let row = try await list.first("the app is listed") { $0.app.text == "com.example.shop" }
        let id = row.endpoint.id.text
        try await eventually("there is one endpoint") { try await broker.endpoints().count == 1 }
        #expect(row.endpoint.kind == .dartVM)
        #expect(row.endpoint.routes.allSatisfy { $0.route.isLoopback })

        #expect(try await broker.ask("show", id).joined().contains("no owner has approved"))
        #expect(service.connections == 0, "an unapproved address is not dialled")
        _ = try await broker.ask("approve", id, "--address", "127.0.0.1")

        let url = "http://127.0.0.1:\(service.port)/\(Self.code)/"
        let shown = try await Self.shown(id, with: url, by: broker)
        #expect(shown.contains("ws://127.0.0.1:\(service.port)/\(Self.code)/ws"))
        #expect(try await broker.ask("show", id, "--json").joined().contains("\"vmService\":{"))
        #expect(try await broker.ask("list").last == "The URL of a Dart VM service: patchbay show \(id)")
        let forward = try await broker.ask("forward", "tcp:0", "--endpoint", id, "--detach")
        #expect(forward.last?.hasPrefix("VM service: http://127.0.0.1:") == true, "\(forward)")
        #expect(forward.last?.hasSuffix("/\(Self.code)/") == true, "\(forward)")

        let plain = try await GrantClient(["registry.read", "secret.use"], of: broker, port: api, in: scratch)
        #expect(try await plain.get("/v1/endpoints/\(id)/vm-service").status == 403)
        #expect(try await !plain.get("/v1/endpoints/\(id)").body.contains(Self.code))
        let reader = try await GrantClient(["registry.read", "secret.read"], of: broker, port: api, in: scratch)
        #expect(try await reader.get("/v1/endpoints/\(id)/vm-service").body.contains(url))
        let audit = try await broker.ask("audit", "--last", "1")
        #expect(audit.first?.contains("  secret-read  \(id)  ") == true, "\(audit)")

        // A relaunch with another port and code.
        let next = try VMService(in: scratch)
        app.terminate()
        tool.terminate()
        _ = (try await app.exitStatus(), try await tool.exitStatus())
        _ = try await list.first("it is gone", from: row.next) { $0.id.text == id && $0.state == .offline }
        _ = try await Self.announceApp(next.port, "nextCode4711", on: host)
        _ = try await Self.announceTool(next.port, "nextCode4711", on: host)
        _ = try await Self.shown(id, with: "http://127.0.0.1:\(next.port)/nextCode4711/", by: broker)
        #expect(try await broker.endpoints().map(\.id.text) == [id])

        #expect(service.bytes == 0 && next.bytes == 0, "the broker sends nothing to a VM service")
        let said =
            try await broker.ask("list", "--json") + broker.ask("list") + broker.ask("audit")
            + [list.watch.log, broker.daemon.log]
        for text in said {
            #expect(!text.contains("EMYU73JbR") && !text.contains("nextCode4711"), "\(text)")
        }
        let state = "\(scratch.path)/state"
        for name in try FileManager.default.subpathsOfDirectory(atPath: state) {
            guard let bytes = FileManager.default.contents(atPath: "\(state)/\(name)") else { continue }
            #expect(bytes.firstRange(of: Data("nextCode4711".utf8)) == nil, "it is in \(name)")
        }
    }

    @Test(arguments: [false, true])
    func `an advert of this host's own Flutter tool on another interface leads to loopback`(isIPv6: Bool) async throws {
        let network = try await MDNSNetwork(["here", "far"], in: scratch)
        let here = network.hosts[0]
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)

        let tool =
            try await isIPv6
            ? RawAnnouncement.flutterToolResponder(port: 8_181, code: Self.code, overIPv6: "eth0", on: here)
            : RawAnnouncement.flutterToolResponder(port: 8_181, code: Self.code, from: "10.99.0.1", on: here)

        let row = try await list.first("its loopback addresses are routes") {
            $0.app.text == "shop" && Set($0.routes.map(\.description)) == ["127.0.0.1:8181", "[::1]:8181"]
        }
        #expect(tool.output.contains { $0.hasPrefix(isIPv6 ? "answered fe80:" : "answered 10.99.0.1") })
        let id = row.endpoint.id.text
        _ = try await broker.ask("approve", id, "--address", isIPv6 ? "::1" : "127.0.0.1")
        let authority = isIPv6 ? "[::1]:8181" : "127.0.0.1:8181"
        _ = try await Self.shown(id, with: "http://\(authority)/\(Self.code)/", by: broker)
    }

    @Test func `two Flutter tools on one host are two endpoints if the second one renames its advert`() async throws {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        for (port, name) in [(UInt16(8_181), "Flutter Tools on rig"), (8_182, "Flutter Tools on rig-2")] {
            let peer = try await ZeroconfPeer.publishing(
                "Flutter Tools on rig",
                "_flutter_devices._tcp",
                port,
                ["project_name=shop", "ws_uri=ws://127.0.0.1:\(port)/\(Self.code)/ws"],
                renames: true,
                on: host,
                in: scratch
            )
            #expect(peer.program.log.contains("registered \(name)._flutter_devices._tcp.local."))
        }

        let endpoints = try await eventually("both are listed") {
            let endpoints = try await broker.endpoints()
            return endpoints.count == 2 ? endpoints : nil
        }
        #expect(Set(endpoints.flatMap(\.routes).map(\.route.port)) == [8_181, 8_182])
        #expect(endpoints.allSatisfy { $0.kind == .dartVM && $0.app.text == "shop" && $0.state == .online })
    }

    @Test func `an advert of another host that gives a loopback address is never followed`() async throws {
        let (here, far) = try await MDNSNetwork.pair("here", "far", in: scratch)
        let script = """
            import socket
            listener = socket.create_server(('127.0.0.1', 8181))
            print('listening', flush=True)
            while True:
                listener.accept()
                print('accepted', flush=True)
            """
        let server = try await here.start("python3", ["-c", script])
        try await server.waitForLine("listening")
        let broker = try await RunningBroker(in: scratch, on: here, configuration: "[broker]\nlog_level = \"debug\"\n")
        let list = try await LiveList(of: broker)

        // The other host answers questions, but the broker's question does not leave this host.
        let responder = try await RawAnnouncement.flutterToolResponder(
            port: 8_181,
            code: Self.code,
            from: "10.99.0.2",
            on: far
        )
        let row = try await list.first("the advert is listed") { $0.kind == .dartVM && $0.state == .blocked }
        try await broker.daemon.waitForLine("confirmed=false")
        #expect(try await broker.endpoints().allSatisfy { $0.routes.isEmpty })
        #expect(!responder.output.contains { $0.hasPrefix("answered") })
        #expect(row.endpoint.routes.isEmpty)
        #expect(row.endpoint.reason?.contains("is the loopback address") == true, "\(row.endpoint.reason ?? "")")
        let id = row.endpoint.id.text
        let approve = try await broker.start("approve", id, "--address", "127.0.0.1")
        #expect(try await approve.exitStatus() != .exited(0), "\(approve.log)")
        let probe = try await broker.start("show", id, "--probe")
        _ = try await probe.exitStatus()
        #expect(!probe.log.contains("EMYU73JbR"), "\(probe.log)")
        #expect(!server.log.contains("accepted"))
    }
}
