import Model

/// A DevTools socket of an app, such as `webview_devtools_remote_4711` or `chrome_devtools_remote`.
struct DevToolsSocket: Hashable, Sendable {
    private static let mark = "_devtools_remote"
    /// The command whose output `listed(in:)` reads.
    static let command = "grep -a \(mark) /proc/net/unix"
    /// The maximum number of sockets of a phone. Any app may create sockets with such names.
    static let limit = 32

    let name: AbstractSocketName
    /// The part before the mark, which names the program that has no process in its name: `chrome`.
    let program: String
    /// The process that the name ends with; nil if there is none.
    let processID: UInt32?

    /// Returns nil for the name of another socket.
    init?(_ name: AbstractSocketName) {
        guard let range = name.text.firstRange(of: Self.mark), range.lowerBound > name.text.startIndex else {
            return nil
        }
        let rest = name.text[range.upperBound...]
        processID = rest.hasPrefix("_") ? UInt32(rest.dropFirst()) : nil
        guard rest.isEmpty || processID != nil else { return nil }
        self.name = name
        program = String(name.text[..<range.lowerBound])
    }

    /// Returns the listening sockets in lines of `/proc/net/unix`, sorted by name.
    ///
    /// The line is `NUMBER: REFERENCES PROTOCOL FLAGS TYPE STATE INODE @NAME`. A connection has the name of its listener.
    static func listed(in output: [UInt8]) -> [DevToolsSocket] {
        let sockets = output.split(separator: UInt8(ascii: "\n")).compactMap { line -> DevToolsSocket? in
            listener(String(decoding: line, as: UTF8.self).split(separator: " ")).flatMap { DevToolsSocket($0) }
        }
        return Array(Set(sockets).sorted { $0.name.text < $1.name.text }.prefix(limit))
    }

    /// Returns the name of a listening abstract socket, of the words of a line.
    static func listener(_ words: [Substring]) -> AbstractSocketName? {
        // __SO_ACCEPTCON of the kernel's net.h.
        guard words.count == 8, UInt32(words[3], radix: 16).map({ $0 & 0x10000 != 0 }) == true, words[7].hasPrefix("@")
        else { return nil }
        return AbstractSocketName(words[7].dropFirst())
    }
}

/// The DevTools sockets of one phone, by the apps that they belong to. Has no I/O.
///
/// The name of a socket changes at each launch, so the package and the process name are the identity.
struct DevToolsSocketTable: Sendable {
    /// The longest package, as of a bundle identifier.
    private static let packageLimit = 155

    /// The app behind a socket.
    private struct Owner: Hashable, Sendable {
        let app: SanitizedText
        /// False for a program that the socket's name names itself.
        let isPackage: Bool
        /// The name of the process in its package; usually empty.
        let role: SanitizedText
    }

    private let udid: UDID
    private var owners: [DevToolsSocket: Owner] = [:]
    private var reported: [Sighting.ID: Sighting] = [:]

    init(of udid: UDID) { self.udid = udid }

    /// Returns the sockets whose process has to be read.
    func unknown(among sockets: [DevToolsSocket]) -> [DevToolsSocket] { sockets.filter { owners[$0] == nil } }

    /// Applies the sockets of the phone, and the command lines of unknown ones.
    ///
    /// - Returns: The changes, and again each socket that is still there.
    mutating func apply(_ sockets: [DevToolsSocket], commandLines: [DevToolsSocket: [UInt8]]) -> [SightingEvent] {
        var known: [DevToolsSocket: Owner] = [:]
        for socket in sockets { known[socket] = owners[socket] ?? Self.owner(of: socket, commandLines[socket]) }
        owners = known
        var current: [Sighting.ID: Sighting] = [:]
        // Of several processes with one name, such as those of two people, the one with the highest number counts.
        for (socket, owner) in known.sorted(by: { ($0.key.processID ?? 0) < ($1.key.processID ?? 0) }) {
            let sighting = sighting(of: socket, owner)
            current[sighting.id] = sighting
        }
        let lost = reported.keys.filter { current[$0] == nil }.sorted { $0.key < $1.key }
        reported = current
        let seen = current.values.sorted { $0.id.key < $1.id.key }
        return lost.map { .lost($0) } + seen.map { .seen($0) }
    }

    /// Returns the loss of everything that was reported.
    mutating func removeAll() -> [SightingEvent] { apply([], commandLines: [:]) }

    private static func owner(of socket: DevToolsSocket, _ commandLine: [UInt8]?) -> Owner? {
        guard socket.processID != nil else {
            return Owner(app: SanitizedText(socket.program), isPackage: false, role: SanitizedText(""))
        }
        guard let name = commandLine?.prefix(while: { $0 != 0 && $0 != UInt8(ascii: "\n") }), name.count <= packageLimit
        else { return nil }
        let parts = name.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        // A process that has just started still has the name of zygote.
        guard (1...2).contains(parts.count), parts[0].contains(UInt8(ascii: ".")),
            parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { $0.isLetterOrDigit || $0 == 0x2E || $0 == 0x5F } })
        else { return nil }
        return Owner(
            app: SanitizedText(String(decoding: parts[0], as: UTF8.self), limit: packageLimit),
            isPackage: true,
            role: SanitizedText(parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : "")
        )
    }

    private func sighting(of socket: DevToolsSocket, _ owner: Owner) -> Sighting {
        Sighting(
            id: Sighting.ID(source: .adb, key: "\(udid)/devtools/\(owner.app)/\(owner.role)"),
            kind: .web,
            app: owner.app,
            appIsBundleID: owner.isPackage,
            name: owner.app,
            device: udid,
            role: owner.role,
            routes: [.usb(USBRoute(udid: udid, socket: .abstract(socket.name)))]
        )
    }
}
