import Model
import SystemIO

/// Which adb server is used: the value of `devices.adb`.
package enum ADBSetting: Hashable, Sendable {
    /// The server of this machine, or the one that adb's own environment variables name.
    case auto
    case off
    /// A server that the owner named. It may be on another machine.
    case address(ServerAddress)

    package static let portVariable = "ANDROID_ADB_SERVER_PORT"
    package static let addressVariable = "ANDROID_ADB_SERVER_ADDRESS"
    package static let socketVariable = "ADB_SERVER_SOCKET"
    /// The port of adb servers.
    package static let standardPort: UInt16 = 5037

    /// Parses `auto`, `off`, `HOST:PORT`, `[V6]:PORT` and `/path`. Returns nil for other text.
    package init?(_ text: String) {
        switch text {
        case "auto": self = .auto
        case "off": self = .off
        default:
            // adb's own form `tcp:PORT` would name a host tcp.
            guard !text.hasPrefix("tcp:"), let address = ServerAddress(text) else { return nil }
            self = .address(Self.withoutLookup(address))
        }
    }

    /// Returns the address of the server; nil if adb is off.
    ///
    /// The order is the one of adb: `ADB_SERVER_SOCKET`, then `ANDROID_ADB_SERVER_ADDRESS` and `_PORT`. An address of
    /// another machine in a variable is refused: adb has no authentication, so only the configuration can name one.
    ///
    /// - Throws: `ADBError.badAddress`.
    package func address(_ environment: [String: String]) throws(ADBError) -> ServerAddress? {
        switch self {
        case .off: return nil
        case .address(let address): return address
        case .auto:
            let (address, variable) = try Self.standard(environment)
            guard address.isLocal else {
                throw .badAddress(
                    "$\(variable) names an adb server on another machine, \(address); set devices.adb to it if you trust it"
                )
            }
            return address
        }
    }

    private static func standard(
        _ environment: [String: String]
    ) throws(ADBError) -> (address: ServerAddress, variable: String) {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let text = value(socketVariable) {
            guard let address = read(socket: text) else { throw bad(text, socketVariable, "tcp:HOST:PORT") }
            return (address, socketVariable)
        }
        let port = value(portVariable) ?? "\(standardPort)"
        guard UInt16(port).map({ $0 > 0 }) == true else { throw bad(port, portVariable, "a port from 1 to 65535") }
        let host = value(addressVariable) ?? "127.0.0.1"
        let text = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        guard let address = ServerAddress(text) else { throw bad(host, addressVariable, "a host name or an address") }
        return (withoutLookup(address), addressVariable)
    }

    /// Reads the forms of adb's `socket_spec` that name a server: `tcp:PORT`, `tcp:HOST:PORT` and
    /// `localfilesystem:/path`.
    private static func read(socket text: String) -> ServerAddress? {
        let path = "localfilesystem:"
        if text.hasPrefix(path) {
            return ServerAddress(String(text.dropFirst(path.count))).flatMap { $0.path == nil ? nil : $0 }
        }
        guard text.hasPrefix("tcp:") else { return nil }
        let place = String(text.dropFirst(4))
        return (place.contains(":") ? ServerAddress(place) : ServerAddress("127.0.0.1:\(place)")).map(withoutLookup)
    }

    /// The name `localhost` as an address, so that it is never looked up.
    private static func withoutLookup(_ address: ServerAddress) -> ServerAddress {
        if case .tcp("localhost", let port) = address { .tcp(host: "127.0.0.1", port: port) } else { address }
    }

    private static func bad(_ text: String, _ variable: String, _ form: String) -> ADBError {
        .badAddress("$\(variable) is \"\(SanitizedText(text))\", which is not \(form); correct it, or set devices.adb")
    }
}

extension ADBSetting: CustomStringConvertible {
    package var description: String {
        switch self {
        case .auto: "auto"
        case .off: "off"
        case .address(let address): address.description
        }
    }
}
