import FoundationEssentials
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A broker without a team, with a phone, and the clients of its app.
struct BusyHost {
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
final class SlowStream: Sendable {
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
struct MCPClient {
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
