import Model

/// Where usbmuxd listens.
///
/// Reads every form that the tools around usbmuxd write into `USBMUXD_SOCKET_ADDRESS`: libusbmuxd wants `UNIX:/path` and
/// takes its default without a word for a bare path, pymobiledevice3 wants the bare path and fails on `UNIX:`.
package enum UsbmuxAddress: Hashable, Sendable {
    case unix(path: String)
    /// A name or a numeric address, without brackets.
    case tcp(host: String, port: UInt16)

    /// Where usbmuxd's own packages put the socket.
    package static let standard = UsbmuxAddress.unix(path: "/var/run/usbmuxd")
    package static let variable = "USBMUXD_SOCKET_ADDRESS"

    /// - Throws: `UsbmuxError.badAddress` for anything but `UNIX:/path`, `/path`, `host:port` and `[v6]:port`.
    package init(_ text: String) throws(UsbmuxError) {
        guard let address = Self.read(text) else { throw .badAddress(SanitizedText(text, limit: 200).text) }
        self = address
    }

    /// What the environment says; the standard address where it says nothing.
    package init(environment: [String: String]) throws(UsbmuxError) {
        guard let text = environment[Self.variable], !text.isEmpty else {
            self = .standard
            return
        }
        try self.init(text)
    }

    /// Of the unix socket; nil for TCP.
    package var path: String? {
        switch self {
        case .unix(let path): path
        case .tcp: nil
        }
    }

    /// The form that libusbmuxd understands (`socket_connect_unix` needs the prefix).
    var libusbmuxdForm: String {
        switch self {
        case .unix(let path): "UNIX:\(path)"
        case .tcp: description
        }
    }

    private static func read(_ text: String) -> UsbmuxAddress? {
        if text.hasPrefix("/") { return read(path: text[...]) }
        if text.prefix(5).lowercased() == "unix:" { return read(path: text.dropFirst(5)) }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            !host.contains("/"), !host.contains("["), !host.contains("]")
        else { return nil }
        return .tcp(host: String(host), port: port)
    }

    private static func read(path: Substring) -> UsbmuxAddress? {
        guard path.hasPrefix("/"), path.utf8.count <= ListenAddress.pathLimit, !path.utf8.contains(0) else {
            return nil
        }
        return .unix(path: String(path))
    }
}

extension UsbmuxAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let path): path
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}
