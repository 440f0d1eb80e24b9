import TestSupport

/// A running `patchbay usbmux` for one phone.
struct DeviceSocket {
    let path: String
    let program: Program
    private let scratch: ScratchFolder

    /// Starts the command and returns when its socket listens.
    init(_ udid: String, _ broker: RunningBroker, in scratch: ScratchFolder, options: [String] = []) async throws {
        path = scratch.file("phone")
        self.scratch = scratch
        program = try await broker.start(["usbmux", udid, "--socket", path] + options)
        try await program.waitForLine("UNIX:\(path) -> \(udid)")
    }

    /// The environment that makes libusbmuxd use this socket.
    var environment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(path)"] }

    /// Runs an unmodified tool with this socket and returns its output.
    func run(_ tool: String, _ arguments: String...) async throws -> [String] {
        try await Program.run(tool, arguments, in: scratch, environment: environment)
    }

    /// Waits until the socket lists exactly these devices.
    func lists(_ udids: Set<String>) async throws {
        try await eventually("the socket lists \(udids): \(program.log)") {
            Set(try MuxPeer(to: path).devices().keys) == udids
        }
    }

    /// Connects to a port of the only phone and returns the stream.
    func stream(to port: UInt16) throws -> MuxPeer {
        let peer = try MuxPeer(to: path)
        guard let id = try peer.devices().values.first else { throw TestSupportError("no phone is listed") }
        guard try peer.dial(id, port) == 0 else { throw TestSupportError("Connect failed: \(program.log)") }
        return peer
    }
}
