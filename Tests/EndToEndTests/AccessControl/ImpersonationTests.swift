import AccessControl
import FoundationEssentials
import Logging
import Model
import TestSupport
import Testing

/// Another host on the network takes the name of an approved app.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .python), .scratchFolder) struct ImpersonationTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("ImpersonationTests.swift".count)) + "impersonation.py"
    private static let secret = String(repeating: "5ec2e7", count: 10)

    /// An app on a host of the network: a server and an advert.
    private struct App {
        let server: Program
        let advert: Program

        var gotBytes: Bool { server.output.contains("bytes") }

        init(_ arguments: String..., on host: AvahiHost) async throws {
            server = try await host.start("python3", [ImpersonationTests.script] + arguments)
            let port = String(try await server.waitForLine("listening on ").dropFirst("listening on ".count))
            advert = try await host.start(
                "avahi-publish-service",
                ["AppReveal-com.example.shop", "_appreveal._tcp", port, "bundleId=com.example.shop", "version=1"]
            )
            try await advert.waitForLine("Established under name")
        }
    }

    /// Returns the response through a tunnel, or nil after a reset.
    private func fetch(_ port: UInt16, on host: AvahiHost) async throws -> String? {
        let curl = try await host.start("curl", ["-sS", "--max-time", "5", "http://127.0.0.1:\(port)/"])
        let lines = try await curl.lines()
        return try await curl.exitStatus() == .exited(0) ? lines.map(\.text).joined() : nil
    }

    private func hold(_ port: UInt16, on host: AvahiHost) async throws -> Program {
        let client = try await host.start("python3", [Self.script, "hold", "\(port)"])
        try await client.waitForLine("answered")
        return client
    }

    /// Requests a tunnel with a grant; returns the port or the HTTP status.
    private func tunnel(to id: EndpointID, of broker: RunningBroker, on host: AvahiHost) async throws -> UInt16 {
        let lines = try await host.run("python3", [Self.script, "tunnel", broker.socket, "7282", id.text])
        return try #require(lines.last.flatMap { UInt16($0) })
    }

    @Test func `an impostor gets no byte and no secret until its own route is approved`() async throws {
        let network = try await MDNSNetwork(["here", "there", "thief"], in: scratch)
        let (here, there, thief) = (network.hosts[0], network.hosts[1], network.hosts[2])
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        let real = try await App("serve", "mine", on: there)
        let found = try await list.first("the app is there") { $0.state == .online && $0.routes.count > 1 }
        let id = found.endpoint.id
        #expect(found.endpoint.approval == .pending)
        #expect(try await tunnel(to: id, of: broker, on: here) == 403, "no owner has approved it yet")

        // The approval increments the revision, is listed at once, and shows who approved.
        let revision = try await revision(of: broker)
        _ = try await broker.ask("approve", id.text)
        #expect(try await broker.endpoints().map(\.approval) == [.approved])
        #expect(try await self.revision(of: broker) > revision)
        let told = try await list.first("the yes is told", from: found.next) { $0.approval == .approved }
        let shown = try await broker.ask("show", id.text).joined(separator: "\n")
        #expect(shown.contains("approved by user 0, ") && shown.contains("on there.local at 10.99.0.2"), "\(shown)")
        #expect(told.endpoint.approvedRoutes.map(\.route.address) == ["10.99.0.2"], "the address that was printed")
        try await broker.setSecret(Self.secret, of: id.text)
        let port = try await broker.forward("tcp:0", "--endpoint", id.text)
        let granted = try await tunnel(to: id, of: broker, on: here)
        #expect(try await fetch(port, on: here) == "mine")
        #expect(try await fetch(granted, on: here) == "mine")
        let held = [try await hold(port, on: here), try await hold(granted, on: here)]

        // The app leaves, and another host takes its host name, instance name and bundle identifier.
        real.advert.terminate()
        let away = try await list.first("it is away", from: told.next) { $0.state == .offline }
        try await there.linkDown()
        for client in held { #expect(client.output.count == 1, "going away cuts nothing") }
        try await thief.run("avahi-set-host-name", ["there"])
        let fake = try await App("serve", "theirs", on: thief)
        let taken = try await list.first("it is somewhere else", from: away.next, within: .seconds(20)) {
            $0.approval == .changed
        }
        #expect(taken.endpoint.id == id)
        #expect(taken.endpoint.location.machine?.text == "there.local")
        for client in held { try await client.waitForLine("cut") }

        #expect(try await fetch(port, on: here) == nil)
        #expect(try await fetch(granted, on: here) == nil)
        #expect(try await tunnel(to: id, of: broker, on: here) == 403)
        for command in [["forward", "tcp:0", "--endpoint", id.text, "--detach"], ["secret", "set", id.text]] {
            let refused = try await broker.start(command, input: .pipe)
            try refused.write("\(Self.secret)\n")
            #expect(try await refused.exitStatus() == .exited(77), "\(refused.log)")
        }
        try await checkSecret(of: told.endpoint, not: taken.endpoint, broker, in: scratch)
        #expect(!fake.gotBytes, "\(fake.server.log)")

        // A second approval, for the new address.
        _ = try await broker.ask("approve", id.text)
        #expect(try await fetch(port, on: here) == "theirs")
        #expect(try await fetch(granted, on: here) == "theirs")
        #expect(fake.gotBytes)

        // After the approval is revoked all connections are closed when the command returns.
        let last = [try await hold(port, on: here), try await hold(granted, on: here)]
        _ = try await broker.ask("unapprove", id.text)
        #expect(try await broker.endpoints().map(\.approval) == [.pending])
        for client in last { try await client.waitForLine("cut", within: .seconds(2)) }
        #expect(try await fetch(port, on: here) == nil)
    }

    @Test func `revoking an approval returns after its connections are closed and keeps the tunnels`() async throws {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        let broker = try await RunningBroker(in: scratch, on: here)
        let list = try await LiveList(of: broker)
        _ = try await App("gush", on: there)
        let found = try await list.first("the app is there") { $0.state == .online && $0.routes.count > 1 }
        let id = found.endpoint.id.text
        _ = try await broker.ask("approve", id)

        let lines = try await here.run("python3", [Self.script, "taken", broker.socket, "7282", id, "16"])

        #expect(lines.first == "cut" && lines.last == "standing: 16 waiting: 16", "\(lines)")
    }

    private func revision(of broker: RunningBroker) async throws -> UInt64 {
        let json = try await broker.ask("list", "--json").joined()
        return try JSONCoding.decoder().decode(EndpointList.self, from: Data(json.utf8)).revision
    }

    /// Reads the secrets from a copy of the broker's state, like the code that presents a secret.
    private func checkSecret(
        of original: Endpoint,
        not lookalike: Endpoint,
        _ broker: RunningBroker,
        in scratch: ScratchFolder
    ) async throws {
        try await Program.run("cp", ["-a", scratch.file("state"), scratch.file("copy")], in: scratch)
        let store = try AccessStore(
            in: scratch.file("copy"),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        for route in original.approvedRoutes {
            #expect(try store.secrets.secret(of: original, over: route)?.reveal() == Self.secret)
        }
        #expect(!lookalike.routes.isEmpty)
        for route in lookalike.routes {
            #expect(throws: AccessError.self) { try store.secrets.secret(of: lookalike, over: route) }
            #expect(throws: AccessError.self) { try store.secrets.secret(of: original, over: route) }
        }
        try await store.close()
    }
}
