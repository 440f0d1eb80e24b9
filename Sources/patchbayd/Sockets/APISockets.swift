import API
import FoundationEssentials
import Glibc
import Logging
import Model
import SystemIO

/// The API's unix socket, created by the broker or passed by systemd.
struct APIUnixSocket: Sendable {
    /// The name for log messages: the path, or the fact that systemd passed the socket.
    let name: String
    /// Owns the socket and its file; nil if systemd does.
    private let listener: Listener?
    private let passed: CInt?

    /// Takes the socket passed by systemd, or creates one.
    ///
    /// - Throws: `DaemonError`.
    init(at path: String, activation: SocketActivation, owners: OwnerPolicy, allowAnyUser: Bool) throws {
        passed = activation.unix
        listener = passed == nil ? try Self.make(at: path, or: "--socket") : nil
        name = passed == nil ? path : "the socket passed by systemd"
        if listener != nil { Self.setMode(path, to: owners, allowAnyUser: allowAnyUser) }
    }

    /// Sets the mode of the socket file. The API authenticates the peer of each request.
    ///
    /// If the broker may not give the file to the group, only the owner can connect.
    private static func setMode(_ path: String, to owners: OwnerPolicy, allowAnyUser: Bool) {
        if let group = owners.group, lchown(path, .max, group) == 0 { chmod(path, 0o660) }
        if allowAnyUser { chmod(path, 0o666) }
    }

    /// Returns the socket, for a server that closes it at its end.
    func descriptor() throws -> Descriptor {
        if let passed { return Descriptor(owning: passed) }
        guard let listener else { throw DaemonError.activation(reason: "there is none") }
        return try listener.duplicate()
    }

    /// Creates a unix socket, and its folder if missing. `option` names the setting in error messages.
    ///
    /// - Throws: `DaemonError`.
    static func make(at path: String, or option: String, access: UnixSocketAccess = .private) throws -> Listener {
        guard path.hasPrefix("/"), path.utf8.count <= ListenAddress.pathLimit else {
            throw DaemonError.path(
                "\(path) cannot be a socket: it must be an absolute path of at most \(ListenAddress.pathLimit) bytes"
            )
        }
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        if !folder.isEmpty, !FileManager.default.fileExists(atPath: folder) {
            do {
                try FileManager.default.createDirectory(
                    atPath: folder,
                    withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700]
                )
            } catch {
                throw DaemonError.path("the folder \(folder) for the socket cannot be made; use \(option)")
            }
        }
        do {
            return try Listener(on: .unix(path: path), access: access)
        } catch let error as SocketError {
            if case .inUse = error { throw DaemonError.socket(error.description) }
            throw DaemonError.path(error.description)
        }
    }
}

/// The API's TCP sockets on 127.0.0.1 and ::1, created by the broker or passed by systemd.
struct APITCPSockets: Sendable {
    /// The listening sockets with their ports.
    let descriptors: [(number: CInt, port: UInt16)]

    /// The port in pairing strings and in the address of the page; nil if the broker has no socket on 127.0.0.1.
    let port: UInt16?
    /// The problem of an address that another program has; nil without one.
    let status: SourceStatus?

    /// Opens the sockets. A port in use is logged and skipped, because clients can still use the unix socket.
    init(_ configuration: Configuration.API, activation: SocketActivation, logger: Logger) {
        var found = activation.tcp.compactMap { number in
            SocketAddress.local(of: number)?.port.map { (number: number, port: $0) }
        }
        if !found.isEmpty, !configuration.tcp {
            logger.warning(
                "api.tcp is false, but systemd passes TCP sockets; their clients get no response",
                metadata: ["try": "systemctl disable --now patchbayd-tcp.socket"]
            )
            found = []
        }
        var taken: [SocketAddress] = []
        var port = found.first?.port
        if found.isEmpty, configuration.tcp {
            for host in ["127.0.0.1", "::1"] {
                guard let address = SocketAddress(numeric: host, port: configuration.port) else { continue }
                do {
                    let socket = try Listener(on: address).duplicate()
                    found.append((number: socket.release(), port: configuration.port))
                    if host == "127.0.0.1" { port = configuration.port }
                } catch {
                    if case SocketError.inUse = error { taken.append(address) }
                    logger.warning(
                        "the API does not listen on TCP; set another api.port, or api.tcp = false",
                        metadata: ["address": "\(address)", "reason": "\(error)"]
                    )
                }
            }
        }
        descriptors = found
        self.port = port
        status = taken.isEmpty ? nil : SourceStatus(taken: taken, port: configuration.port)
    }
}

extension SourceStatus {
    /// Describes addresses of the API that another program has.
    ///
    /// A browser may send to [::1] what a person opens at `localhost`, so the program there could pose as the broker.
    fileprivate init(taken: [SocketAddress], port: UInt16) {
        let list = taken.map(\.description).joined(separator: " and ")
        self.init(
            name: BrokerPart.api.rawValue,
            state: .ok,
            detail: "another program listens at \(list), and gets what browsers and clients send there",
            hint: "`sudo ss -ltnp 'sport = :\(port)'` names the program; end it, or set another api.port, and restart "
                + "the broker"
        )
    }
}
