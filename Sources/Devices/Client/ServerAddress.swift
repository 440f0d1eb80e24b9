import Glibc
import Model
import SystemIO

/// The address of a server of phones: usbmuxd or adb.
///
/// Accepts every form that tools write into `USBMUXD_SOCKET_ADDRESS`. libusbmuxd requires `UNIX:/path` and silently
/// uses its default for a bare path. pymobiledevice3 requires the bare path and fails on `UNIX:`.
package enum ServerAddress: Hashable, Sendable {
    case unix(path: String)
    /// A host name or a numeric address without brackets.
    case tcp(host: String, port: UInt16)

    /// Parses `UNIX:/path`, `/path`, `host:port` and `[v6]:port`. Returns nil for other text.
    package init?(_ text: String) {
        guard let address = Self.read(text) else { return nil }
        self = address
    }

    /// The path of the unix socket; nil for TCP.
    package var path: String? {
        switch self {
        case .unix(let path): path
        case .tcp: nil
        }
    }

    /// True if only programs of this machine can be behind the address.
    var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp(let host, _): host.hasPrefix("127.") && SocketAddress(numeric: host, port: 1) != nil || host == "::1"
        }
    }

    private static func read(_ text: String) -> ServerAddress? {
        if text.hasPrefix("/") { return read(path: text[...]) }
        if text.prefix(5).lowercased() == "unix:" { return read(path: text.dropFirst(5)) }
        guard case .tcp(let host?, let port)? = ListenAddress("tcp:\(text)"), port > 0, host.utf8.count <= 255,
            text.hasPrefix("[") == host.contains(":"),
            host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"/[]".utf8.contains($0) })
        else { return nil }
        return .tcp(host: host, port: port)
    }

    private static func read(path: Substring) -> ServerAddress? {
        guard path.hasPrefix("/"), path.utf8.count <= ListenAddress.pathLimit, !path.utf8.contains(0) else {
            return nil
        }
        return .unix(path: String(path))
    }
}

extension ServerAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let path): path
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}

extension ServerAddress {
    /// Connects to the server. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `SocketError`; `CancellationError`.
    func connect() async throws -> Descriptor {
        switch self {
        case .unix(let path):
            return try await connect(to: .unix(path: path))
        case .tcp(let host, let port):
            var failure = SocketError.failed(call: "connect", on: description, code: EADDRNOTAVAIL)
            for address in try await SocketAddress.addresses(of: host, port: port) {
                do {
                    return try await connect(to: address)
                } catch let error as SocketError {
                    failure = error
                }
            }
            throw failure
        }
    }

    private func connect(to address: SocketAddress) async throws -> Descriptor {
        var backoff = Backoff.queueFull
        while true {
            do {
                return try await address.connect(within: .seconds(30))
            } catch SocketError.failed(_, _, EAGAIN) {
                // The server's accept queue is full.
                try await backoff.wait(clock: PollerClock())
            }
        }
    }
}
