import FoundationEssentials
import TestSupport

/// A client of the HTTP API with a grant of certain scopes.
struct GrantClient {
    private struct Opened: Decodable { let token: String }
    private struct Issued: Decodable { let token: String }

    /// The response to a request.
    struct Response {
        let status: Int
        let body: String
    }

    private let token: String
    private let port: UInt16
    private let scratch: ScratchFolder

    /// Redeems a new invite. The broker must listen on the TCP port.
    init(_ scopes: [String], of broker: RunningBroker, port: UInt16, in scratch: ScratchFolder) async throws {
        self.port = port
        self.scratch = scratch
        let pair = try await broker.start(["pair", "--detach", "--json"] + scopes.flatMap { ["--scope", $0] })
        guard try await pair.exitStatus() == .exited(0), let line = pair.output.first else {
            throw TestSupportError("no invite: \(pair.log)")
        }
        let invite = try JSONDecoder().decode(Opened.self, from: Data(line.utf8)).token
        let spec = #"{"token":"\#(invite)","client":"\#(String(repeating: "c", count: 22))","name":"test"}"#
        let issued = try await Self.send("POST", "/v1/invites/redeem", spec, as: nil, port, scratch)
        token = try JSONDecoder().decode(Issued.self, from: Data(issued.body.utf8)).token
    }

    func get(_ path: String) async throws -> Response {
        try await Self.send("GET", path, nil, as: token, port, scratch)
    }

    func post(_ path: String, _ body: String) async throws -> Response {
        try await Self.send("POST", path, body, as: token, port, scratch)
    }

    private static func send(
        _ method: String,
        _ path: String,
        _ body: String?,
        as token: String?,
        _ port: UInt16,
        _ scratch: ScratchFolder
    ) async throws -> Response {
        var words = ["-sS", "--max-time", "10", "-X", method, "-w", "\n%{http_code}"]
        if let token { words += ["-H", "Authorization: Bearer \(token)"] }
        if let body { words += ["-H", "Content-Type: application/json", "--data", body] }
        let lines = try await Program.run("curl", words + ["http://127.0.0.1:\(port)\(path)"], in: scratch)
        return Response(status: lines.last.flatMap { Int($0) } ?? 0, body: lines.dropLast().joined())
    }
}
