import API
import Glibc
import Logging
import SystemIO

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
