import TestSupport

/// A peer of the state debugger: an app (`statedebug.py`), another debugger or a sender (`debug_peer.py`).
struct DebugPeer {
    private static let script = String(#filePath.dropLast("DebugPeer.swift".count)) + "debug_peer.py"

    /// The two clients of apps, with their framings.
    enum Client: String, CaseIterable {
        case earlier
        case later

        func frame(_ content: String) -> [UInt8] {
            let length = withUnsafeBytes(of: UInt32(content.utf8.count).littleEndian) { Array($0) }
            return (self == .earlier ? [0xCE] : [0xCE, 0x00]) + length + Array(content.utf8)
        }
    }

    let program: Program

    /// Starts an app that connects to a debugger.
    static func app(_ client: Client, on host: AvahiHost, to address: String, _ port: UInt16) async throws -> Self {
        let words = ["\(TestSupportFolder.sources)/statedebug.py", client.rawValue, address, "\(port)"]
        let peer = DebugPeer(program: try await host.start("python3", words, input: .pipe))
        try await peer.program.waitForLine("connected")
        return peer
    }

    /// Starts another debugger.
    static func debugger(on host: AvahiHost, port: UInt16) async throws -> DebugPeer {
        let peer = DebugPeer(program: try await host.start("python3", [script, "debugger", "\(port)"], input: .pipe))
        try await peer.program.waitForLine("listening")
        return peer
    }

    /// Starts a sender of messages with pictures, and returns the time at which it began, in seconds.
    static func frames(
        _ count: Int,
        ofSize size: Int,
        to address: String,
        _ port: UInt16,
        in scratch: ScratchFolder
    ) async throws -> (peer: DebugPeer, began: Double) {
        let words = [script, "frames", "\(count)", "\(size)", address, "\(port)"]
        let peer = DebugPeer(program: try await Program("python3", words, in: scratch, input: .pipe))
        let line = try await peer.program.waitForLine("began", within: .seconds(60))
        guard let began = line.split(separator: " ").last.flatMap({ Double($0) }) else {
            throw TestSupportError("“\(line)” has no time")
        }
        return (peer, began)
    }

    /// Starts an app that sends states until its input is closed.
    static func states(to address: String, _ port: UInt16, in scratch: ScratchFolder) async throws -> DebugPeer {
        let words = [script, "states", address, "\(port)"]
        let peer = DebugPeer(program: try await Program("python3", words, in: scratch, input: .pipe))
        try await peer.program.waitForLine("sending")
        return peer
    }

    /// Sends bytes that are no messages, and returns the number of bytes and connections.
    static func garbage(
        _ size: Int,
        seed: Int,
        to address: String,
        _ port: UInt16,
        within limit: Duration,
        in scratch: ScratchFolder
    ) async throws -> (bytes: Int, connections: Int) {
        let words = [script, "garbage", "\(size)", "\(seed)", address, "\(port)"]
        let peer = DebugPeer(program: try await Program("python3", words, in: scratch))
        let line = try await peer.program.waitForLine("garbage", within: limit)
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { throw TestSupportError("“\(line)” has no numbers") }
        return (numbers[0], numbers[1])
    }

    /// Sends a state byte for byte. None of the texts may have a space.
    func send(_ state: String, _ action: String, picture: String = "") async throws {
        try program.write("state \(state) \(action) \(picture)\n")
        try await program.waitForLine("sent \(action)")
    }

    static func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    /// The frames that the app has received, in hexadecimal digits.
    var received: [String] { program.output.filter { $0.hasPrefix("received ") || $0.hasPrefix("misread ") } }
}
