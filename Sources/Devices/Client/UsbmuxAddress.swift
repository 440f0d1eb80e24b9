import CLinux
import Glibc
import Model
import SystemIO

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

extension UsbmuxAddress {
    /// Connects. There is no deadline here: the caller has one, and cancels.
    func connect(clock: any Clock<Duration>) async throws -> Descriptor {
        switch self {
        case .unix(let path):
            return try await connect(to: .unix(path: path), clock: clock)
        case .tcp(let host, let port):
            var failure = UsbmuxError.absent(self, errno: EADDRNOTAVAIL)
            for address in try await HostResolver.addresses(of: host, port: port) {
                do {
                    return try await connect(to: address, clock: clock)
                } catch let error as UsbmuxError {
                    failure = error
                }
            }
            throw failure
        }
    }

    private func connect(to address: SocketAddress, clock: any Clock<Duration>) async throws -> Descriptor {
        var pause = Duration.milliseconds(1)
        while true {
            do {
                return try await address.connect(within: .seconds(30), clock: clock)
            } catch SocketError.failed(_, _, EAGAIN) {
                // usbmuxd's accept queue is full (it holds 5 in 1.1.1). The kernel tells nobody when there is room again,
                // so this is asked again.
                try await clock.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(50))
            } catch let error as SocketError {
                throw said(error)
            }
        }
    }

    /// What the socket said, in the words of this module.
    private func said(_ error: SocketError) -> UsbmuxError {
        switch error {
        case .failed(_, _, let code) where [ENOENT, ENOTDIR, ECONNREFUSED].contains(code): .absent(self, errno: code)
        case .failed(_, _, let code) where [EACCES, EPERM].contains(code): .denied(self)
        default: .failed(call: "connecting to usbmuxd at \(self)", words: "\(error)")
        }
    }
}

/// Finds the socket addresses of a usbmuxd that listens on TCP.
///
/// getaddrinfo(3) may ask the network and blocks meanwhile, so it has a thread of its own.
enum HostResolver {
    private static let thread = BlockingCallThread(named: "patchbay-lookup")

    /// In the order of preference that getaddrinfo(3) gives; never empty.
    static func addresses(of host: String, port: UInt16) async throws -> [SocketAddress] {
        if let address = SocketAddress(numeric: host, port: port) { return [address] }
        return try await thread.call {
            var hints = addrinfo()
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            let status = getaddrinfo(host, String(port), &hints, &list)
            guard status == 0 else {
                throw UsbmuxError.failed(
                    call: "the look-up of \(host)",
                    words: String(cString: gai_strerror(status))
                )
            }
            defer { freeaddrinfo(list) }
            let found = sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
                entry.flatMap { address(in: $0.pointee) }
            }
            guard !found.isEmpty else {
                throw UsbmuxError.failed(call: "the look-up of \(host)", words: "no IPv4 or IPv6 address")
            }
            return found
        }
    }

    private static func address(in entry: addrinfo) -> SocketAddress? {
        var storage = sockaddr_storage()
        guard let raw = entry.ai_addr, entry.ai_addrlen <= MemoryLayout<sockaddr_storage>.size else { return nil }
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: Int(entry.ai_addrlen)))
        }
        return SocketAddress(storage)
    }
}
