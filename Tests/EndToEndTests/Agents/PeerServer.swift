import TestSupport

/// `server.py`: a server that offers one of everything, made with one of the libraries.
struct PeerServer {
    let port: UInt16

    var url: String { "http://127.0.0.1:\(port)/mcp" }
    /// Where it listens as well.
    let socket: String
    /// Where it takes a message a line.
    let linePort: UInt16
    let program: Program

    /// Returns when it listens. A stateless one speaks nothing but 2026-07-28.
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
        guard let port = UInt16(line.dropFirst(words.count)) else { throw RigError("“\(line)” is no port") }
        return port
    }
}
