import FoundationEssentials
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A broker that joins and leaves a team while clients use it.
@Suite(.needs(.root, .etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamChangeTests {
    private let scratch = ScratchFolder.current

    /// A broker without a team, with a phone, and the clients of its app.
    private struct BusyHost {
        let broker: RunningBroker
        let id: String
        let stream: SlowStream
        let agent: MCPClient
        let lease: Lease
        let app: SampleApp
        private let server: PatternServer

        init(_ name: String, in scratch: ScratchFolder) async throws {
            app = try await SampleApp(in: scratch)
            server = try PatternServer(sending: 1 << 30, in: scratch)
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let ports = try FreePorts.take(2)
            broker = try await RunningBroker(
                in: scratch,
                named: name,
                phones: rig,
                configuration: RunningTeam.configuration(
                    api: ports[0],
                    team: "127.0.0.1:\(ports[1])",
                    probing: app.port
                )
            )
            id = try await eventually("the app is listed") { [broker] in
                try await broker.endpoints().first { $0.state == .online }?.id.text
            }
            let path = scratch.file("\(name).tunnel")
            _ = try await broker.ask("forward", "--detach", "-d", Phones.one, "unix:\(path):\(server.port)")
            stream = SlowStream(try await SocketStream.connect(to: .unix(path: path)))
            let grant = try await AgentBroker(socket: broker.socket, port: ports[0], in: scratch)
            agent = try await MCPClient(grant.url(of: id), grant: grant.grant, in: scratch)
            _ = try await broker.ask("lease", id, "--for", "30m")
            lease = try #require(try await broker.leases().first)
        }

        /// Checks that everything from before goes on.
        func check(_ comment: Comment) async throws {
            try await stream.waitForMore()
            let leases = try await broker.leases()
            #expect(leases.map(\.id) == [lease.id], comment)
            #expect(leases.allSatisfy { $0.isOwn && $0.createdAt == lease.createdAt }, comment)
            #expect(try await agent.call("get_screen").contains("\"result\""), comment)
            _ = try await broker.ask("call", id, "tap_element", "element_id=buy")
        }
    }

    /// A client of a stream that never ends, which compares each byte.
    private final class SlowStream: Sendable {
        private let stream: SocketStream
        private let received = Mutex(0)

        init(_ stream: SocketStream) { self.stream = stream }

        /// Receives more bytes than all buffers on the way have.
        func waitForMore() async throws {
            let end = received.withLock { $0 } + (16 << 20)
            while received.withLock({ $0 }) < end {
                let bytes = try await stream.receiveSome()
                let start = received.withLock { $0 }
                guard !bytes.isEmpty, Pattern.matches(bytes, from: start) else {
                    throw TestSupportError("the stream broke after \(start) bytes")
                }
                received.withLock { $0 += bytes.count }
            }
        }
    }

    /// A client with an MCP session.
    private struct MCPClient {
        let words: [String]
        let scratch: ScratchFolder

        init(_ url: String, grant: String, in scratch: ScratchFolder) async throws {
            let words = [
                "-sSN", "-D", "-", "-H", "Authorization: Bearer \(grant)", "-H", "Content-Type: application/json", "-H",
                "Accept: application/json, text/event-stream", url,
            ]
            let client = #""capabilities": {}, "clientInfo": {"name": "a", "version": "1"}"#
            let parameters = #"{"protocolVersion": "2025-11-25", \#(client)}"#
            let initialize = #"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": \#(parameters)}"#
            let head = try await Program.run("curl", words + ["-d", initialize], in: scratch)
            let session = try #require(head.first { $0.lowercased().hasPrefix("mcp-session-id:") }, "\(head)")
            self.words = words + ["-H", String(session.filter { $0 != "\r" })]
            self.scratch = scratch
        }

        /// Calls a tool in the session, and returns the response.
        func call(_ tool: String) async throws -> String {
            let call = #"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "\#(tool)"}}"#
            return try await Program.run("curl", words + ["-d", call], in: scratch).joined(separator: "\n")
        }
    }

    @Test func `a broker joins and leaves a team, and disturbs no stream, grant, session and lease`() async throws {
        let host = try await BusyHost("lab3", in: scratch)
        let team = try await RunningTeam(in: scratch)
        let (lab1, lab3) = (team.lab1, host.broker)
        let daemon = lab3.daemon
        try await host.check("alone")

        try await RunningTeam.join(lab3, as: "lab3", to: lab1)

        try await team.waitForEndpoint("\(host.id).lab3", at: lab1)
        try await team.waitUntil { try await lab1.leases().map(\.id) == ["\(host.lease.id).lab3"] }
        try await host.check("in the team")
        #expect(try await lab3.teamStatus().problem == nil)
        // Both names lead to the app of this host.
        _ = try await lab3.ask("call", "\(host.id).lab3", "get_screen")
        _ = try await lab1.ask("call", "\(host.id).lab3", "get_screen")

        _ = try await lab3.ask("team", "leave")

        try await team.waitUntil { try await !lab1.endpoints().contains { $0.id.text.hasPrefix(host.id) } }
        try await host.check("after the team")
        _ = try await lab3.ask("call", "\(host.id).lab3", "get_screen")
        #expect(try await lab3.teamStatus() == TeamStatus())
        #expect(try await lab3.endpoints().map(\.id.text) == [host.id])

        _ = try await lab1.ask("team", "remove", "lab3")
        try await RunningTeam.join(lab3, as: "lab3", to: lab1)
        try await team.waitForEndpoint("\(host.id).lab3", at: lab1)
        try await host.check("in the team again")

        // A removed host goes on alone, and says so.
        _ = try await lab1.ask("team", "remove", "lab3")
        let problem = "lab3 was removed from the team"
        try await team.waitUntil { try await lab3.teamStatus().problem == problem }
        let status = try await lab3.ask("status").joined(separator: "\n")
        #expect(status.contains(problem), "\(status)")
        let doctor = try await lab3.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.log.contains(problem) && doctor.log.contains("patchbay team leave"), "\(doctor.log)")
        try await daemon.waitForLine("takes no part in the team any more")
        try await host.check("removed")
        #expect(daemon === lab3.daemon)
    }

    @Test func `a lease that is older than the team ends if another host has leased the phone, and the streams stay`()
        async throws
    {
        let host = try await BusyHost("lab3", in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rig, probing: host.app.port)
        let id = try await team.waitForApp(on: Phones.one, at: team.lab1)
        let lease = try await team.lab1.ask("lease", id)
        try await team.waitUntil { try await team.lab2.leases().count == 1 }

        try await RunningTeam.join(host.broker, as: "lab3", to: team.lab1)

        try await team.waitUntil { try await host.broker.leases().map(\.id) == ["l1.lab1"] }
        let renewal = try await host.broker.refused("lease", host.id)
        #expect(renewal.contains("on the host lab1"), "\(renewal), \(lease)")
        try await host.stream.waitForMore()
    }
}
