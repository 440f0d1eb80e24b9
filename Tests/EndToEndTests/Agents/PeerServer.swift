import TestSupport

/// `server.py`: an MCP server with one feature of each kind, made with one of the libraries.
struct PeerServer {
    let port: UInt16

    var url: String { "http://127.0.0.1:\(port)/mcp" }
    /// The unix socket on which the server also listens.
    let socket: String
    /// The TCP port for newline-delimited messages.
    let linePort: UInt16
    let program: Program

    /// Returns when the server listens. A stateless server supports only 2026-07-28.
    init(
        _ library: AgentPeer.Library,
        port: UInt16 = 0,
        isStateless: Bool = false,
        in scratch: ScratchFolder
    ) async throws {
        socket = scratch.file("\(library.rawValue).sock")
        program = try await Program(
            library.interpreter(in: scratch),
            ["\(AgentPeer.folder)/server.py", "--lines", "--socket", socket, "--port", "\(port)"]
                + (isStateless ? ["--stateless"] : []),
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )
        linePort = try await program.port(after: "lines on ")
        self.port = try await program.port(after: "listening on ")
    }
}

extension Program {
    fileprivate func port(after words: String) async throws -> UInt16 {
        let line = try await waitForLine(words, within: .seconds(60))
        guard let port = UInt16(line.dropFirst(words.count)) else { throw TestSupportError("“\(line)” is no port") }
        return port
    }
}
