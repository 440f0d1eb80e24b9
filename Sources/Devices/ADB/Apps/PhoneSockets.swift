import Model

/// The listening ports of a phone with their users, and the users of some processes.
///
/// Both come from the kernel of the phone, so no app can report a port or a process of another one.
struct PhoneSockets: Hashable, Sendable {
    /// The user of each port that `tcp:PORT` of adb may lead to. A port on which several users listen is not in it,
    /// because the phone decides which of them gets a connection.
    private(set) var users: [UInt16: UInt32] = [:]
    /// The user of each process that runs.
    private(set) var processes: [UInt32: UInt32] = [:]

    /// The command whose output the initializer reads.
    static func command(processes: some Sequence<UInt32>) -> String {
        let folders = processes.map { " /proc/\($0)" }.joined()
        return "cat /proc/net/tcp /proc/net/tcp6" + (folders.isEmpty ? "" : ";stat -c 'process %u %n'\(folders)")
    }

    /// The command whose output `lists(_:in:)` reads.
    static func command(listing socket: DeviceSocket) -> String {
        switch socket {
        case .port: command(processes: [])
        case .abstract: "cat /proc/net/unix"
        }
    }

    /// Returns whether a socket is in a list of listening sockets; nil if the output is no list.
    static func lists(_ socket: DeviceSocket, in output: [UInt8]) -> Bool? {
        let lines = output.split(separator: UInt8(ascii: "\n")).lazy.map { line in
            String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        }
        switch socket {
        case .port(let port):
            guard lines.contains(where: { $0.contains("local_address") }) else { return nil }
            return lines.contains { listener($0)?.port == port }
        case .abstract(let name):
            guard lines.contains(where: { $0.first == "Num" }) else { return nil }
            return lines.contains { DevToolsSocket.listener($0) == name }
        }
    }

    init(_ output: [UInt8]) {
        var several: Set<UInt16> = []
        for line in output.split(separator: UInt8(ascii: "\n")) {
            let words = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
            if words.count == 3, words[0] == "process" {
                let id = words[2].split(separator: "/").last.flatMap { UInt32($0) }
                if let id, let user = UInt32(words[1]) { processes[id] = user }
            } else if let (port, user) = Self.listener(words) {
                if let known = users[port], known != user { several.insert(port) }
                users[port] = user
            }
        }
        for port in several { users[port] = nil }
    }

    /// The state LISTEN of `/proc/net/tcp` (TCP_LISTEN in the kernel's tcp_states.h).
    private static let listening = "0A"
    /// The addresses to which adbd's connections to 127.0.0.1 and ::1 lead, in the byte order of a little-endian kernel:
    /// 0.0.0.0, 127.0.0.1, ::, ::1, ::ffff:0.0.0.0 and ::ffff:127.0.0.1.
    private static let addresses: Set<Substring> = [
        "00000000", "0100007F", "00000000000000000000000000000000", "00000000000000000000000001000000",
        "0000000000000000FFFF000000000000", "0000000000000000FFFF00000100007F",
    ]

    /// Reads `SLOT: ADDRESS:PORT REMOTE STATE QUEUES TIMER RETRANSMITS USER …` (proc(5)).
    private static func listener(_ words: [Substring]) -> (port: UInt16, user: UInt32)? {
        guard words.count > 7, words[3] == listening, let user = UInt32(words[7]) else { return nil }
        let place = words[1].split(separator: ":")
        guard place.count == 2, addresses.contains(place[0]), let port = UInt16(place[1], radix: 16) else { return nil }
        return (port, user)
    }
}
