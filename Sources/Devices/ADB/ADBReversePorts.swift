import Model

/// The ports of a phone that lead to ports of the adb server's machine, as the phone lists them.
struct ADBReversePorts: Hashable, Sendable {
    /// The server's port of each port of the phone. Sockets of other kinds are left out.
    let localPorts: [UInt16: UInt16]

    /// Parses the text of `reverse:list-forward`: lines of a name, the phone's socket and the server's socket, such as
    /// `(reverse) tcp:8081 tcp:8081` (AOSP adb_listeners.cpp).
    init(text: [UInt8]) {
        let lines = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline)
        let pairs = lines.compactMap { line -> (UInt16, UInt16)? in
            let ports = line.split(separator: " ").suffix(2).compactMap { word in
                word.hasPrefix("tcp:") ? UInt16(word.dropFirst(4)) : nil
            }
            return ports.count == 2 ? (ports[0], ports[1]) : nil
        }
        localPorts = Dictionary(pairs) { $1 }
    }
}

/// The ports of a phone that lead to this machine. Each function throws `DialError` if the phone cannot be reached,
/// `ADBError`, and `CancellationError`.
extension ADBDeviceMonitor {
    /// Opens a port, also in place of what any program opened there.
    nonisolated func openReverse(_ port: UInt16, to localPort: UInt16, of udid: UDID) async throws {
        try await perform(.openReverse(port, to: localPort), on: udid) { try await $0.readAnswer(to: $1) }
    }

    /// Closes a port. Its open connections stay. A port that is not open is no error.
    nonisolated func closeReverse(_ port: UInt16, of udid: UDID) async throws {
        do {
            try await perform(.closeReverse(port), on: udid) { try await $0.readAnswer(to: $1) }
        } catch ADBError.refused(let reason, _) where reason.text.hasSuffix("not found") {
            // An unplug or another program has closed it.
        }
    }

    /// Returns the open ports, also those that other programs opened.
    nonisolated func reversePorts(of udid: UDID) async throws -> ADBReversePorts {
        ADBReversePorts(text: try await perform(.listReverse, on: udid) { try await $0.readText(of: $1) })
    }
}
