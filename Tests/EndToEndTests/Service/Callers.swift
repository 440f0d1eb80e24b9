import TestSupport

/// `callers.py`: clients of the broker, and systemd's part of the protocol.
enum Callers {
    static let script = String(#filePath.dropLast("Callers.swift".count)) + "callers.py"

    /// Runs one scenario of the script to its end.
    static func run(_ arguments: String..., in scratch: ScratchFolder) async throws -> [String] {
        try await Program.run("python3", [script] + arguments, in: scratch)
    }

    /// Listens on the notify socket. Each notification is a line that begins with the time in seconds.
    static func listen(at notify: String, socket: String, in scratch: ScratchFolder) async throws -> Program {
        let listener = try await Program("python3", [script, "notify", notify, socket], in: scratch)
        try await listener.waitForLine("listening")
        return listener
    }
}

extension RunningBroker {
    /// Returns the number of open connections at the socket.
    func connections(in scratch: ScratchFolder) async throws -> Int {
        try await Program.run("ss", ["-xH"], in: scratch).count { $0.contains(" ESTAB ") && $0.contains(" \(socket) ") }
    }
}
