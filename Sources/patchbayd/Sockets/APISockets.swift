import API
import FoundationEssentials
import Glibc
import Logging
import Model
import SystemIO

/// The unix socket of the API: ours, or the one that systemd made.
struct APIUnixSocket: Sendable {
    /// What people are told: its path, or who passed it.
    let name: String
    /// Owns the socket and its file; nil when systemd does.
    private let listener: Listener?
    private let passed: CInt?

    /// - Throws: `DaemonError`.
    init(at path: String, activation: SocketActivation, owners: OwnerPolicy, anyUser: Bool) throws {
        passed = activation.unix
        listener = passed == nil ? try Self.make(at: path, or: "--socket") : nil
        name = passed == nil ? path : "the socket passed by systemd"
        if listener != nil { Self.open(path, to: owners, anyUser: anyUser) }
    }

    /// Lets those connect who may have something to ask. Who they are is looked at for each request.
    ///
    /// Where the group's members cannot be given the file, it stays the owner's alone.
    private static func open(_ path: String, to owners: OwnerPolicy, anyUser: Bool) {
        if let group = owners.group, lchown(path, .max, group) == 0 { chmod(path, 0o660) }
        if anyUser { chmod(path, 0o666) }
    }

    /// The socket, for a server that closes it when it ends.
    func descriptor() throws -> Descriptor {
        if let passed { return Descriptor(owning: passed) }
        guard let listener else { throw DaemonError.activation(what: "there is none") }
        return try listener.duplicate()
    }

    /// A unix socket of ours, the folder made where it is missing; `option` is how to name another place.
    ///
    /// - Throws: `DaemonError`.
    static func make(at path: String, or option: String) throws -> Listener {
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
            return try Listener(on: .unix(path: path))
        } catch let error as SocketError {
            if case .inUse = error { throw DaemonError.socket(error.description) }
            throw DaemonError.path(error.description)
        }
    }
}

/// The TCP sockets of the API: on 127.0.0.1 and on ::1, ours or those that systemd made.
struct APITCPSockets: Sendable {
    /// What is listened on, each with the port.
    let descriptors: [(number: CInt, port: UInt16)]

    /// Where pairing strings lead to; nil when there is no socket at all.
    var port: UInt16? { descriptors.first?.port }

    /// Where a port is taken, it is said and done without: the unix socket is the door that matters.
    init(_ configuration: Configuration.API, activation: SocketActivation, logger: Logger) {
        var found = activation.tcp.compactMap { number in
            SocketAddress.local(of: number)?.port.map { (number: number, port: $0) }
        }
        if !found.isEmpty, !configuration.tcp {
            logger.warning(
                "api.tcp is false, and systemd passes TCP sockets; callers there wait for nobody",
                metadata: ["try": "systemctl disable --now patchbayd-tcp.socket"]
            )
            found = []
        }
        if found.isEmpty, configuration.tcp {
            for host in ["127.0.0.1", "::1"] {
                guard let address = SocketAddress(numeric: host, port: configuration.port) else { continue }
                do {
                    let socket = try Listener(on: address).duplicate()
                    found.append((number: socket.release(), port: configuration.port))
                } catch {
                    logger.warning(
                        "no TCP door; set another api.port, or api.tcp = false, in the configuration",
                        metadata: ["address": "\(address)", "reason": "\(error)"]
                    )
                }
            }
        }
        descriptors = found
    }
}
