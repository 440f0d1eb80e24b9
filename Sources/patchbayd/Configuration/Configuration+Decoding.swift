import Devices
import FoundationEssentials
import Model

/// Decodes the TOML file: tables and keys in snake case, all of them optional.
///
/// Errors use the file's keys (`ConfigurationValueError`). The decoder is written by hand because a synthesized one
/// requires every key. Strict decoding also needs each key to be requested.
extension Configuration: Decodable {
    private enum Table: String, CodingKey {
        case broker, api, discovery, devices, tunnels, mcp
        case endpoints = "endpoint"
    }

    init(from decoder: any Decoder) throws {
        let tables = try decoder.container(keyedBy: Table.self)
        broker = try tables.value(.broker, "a table: [broker]") ?? Broker()
        api = try tables.value(.api, "a table: [api]") ?? API()
        discovery = try tables.value(.discovery, "a table: [discovery]") ?? Discovery()
        devices = try tables.value(.devices, "a table: [devices]") ?? Devices()
        tunnels = try tables.value(.tunnels, "a table: [tunnels]") ?? Tunnels()
        mcp = try tables.value(.mcp, "a table: [mcp]") ?? MCP()
        let list = try tables.value(.endpoints, "written [[endpoint]], for each", as: [ConfiguredEndpoint].self)
        endpoints = list?.map(\.endpoint) ?? []
    }
}

extension Configuration.Broker {
    private enum CodingKeys: String, CodingKey {
        case socket
        case stateDirectory = "state_directory"
        case logLevel = "log_level"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        socket = try keys.value(.socket, "a path in quotes")
        stateDirectory = try keys.value(.stateDirectory, "a path in quotes")
        logLevel = try keys.value(.logLevel, "a text in quotes, such as \"info\"") ?? logLevel
    }
}

extension Configuration.API {
    private enum CodingKeys: String, CodingKey {
        case tcp, port
        case allowedOrigins = "allowed_origins"
        case anyUser = "any_user"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        tcp = try keys.value(.tcp, "true or false") ?? tcp
        port = try keys.value(.port, "a number from 1 to 65535", as: ConfiguredPort.self)?.number ?? port
        allowedOrigins = try keys.value(.allowedOrigins, "a list such as [\"http://localhost:5173\"]") ?? allowedOrigins
        anyUser = try keys.value(.anyUser, "true or false") ?? anyUser
    }
}

extension Configuration.Discovery {
    private enum CodingKeys: String, CodingKey {
        case enabled, types, interfaces
        case denyInterfaces = "deny_interfaces"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.value(.enabled, "true or false") ?? enabled
        types = try keys.value(.types, "a list such as [\"_mcp._tcp\"]") ?? types
        interfaces = try keys.value(.interfaces, "a list such as [\"eth*\"]") ?? interfaces
        denyInterfaces = try keys.value(.denyInterfaces, "a list such as [\"docker*\"]") ?? denyInterfaces
    }
}

extension Configuration.Devices {
    private enum CodingKeys: String, CodingKey {
        case enabled, client, usbmuxd
        case serveUsbmuxd = "serve_usbmuxd"
        case probePorts = "probe_ports"
        case maxStreams = "max_streams"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.value(.enabled, "true or false") ?? enabled
        client = try keys.value(.client, Client.choice) ?? client
        usbmuxd = try keys.value(.usbmuxd, "an address in quotes, such as \"\(UsbmuxAddress.standard)\"")
        serveUsbmuxd = try keys.value(.serveUsbmuxd, "\"unix:/path\"")
        let ports = try keys.value(.probePorts, "a list of ports such as [9876, 8765]", as: [ConfiguredPort].self)
        probePorts = ports?.map(\.number) ?? probePorts
        maxStreams = try keys.value(.maxStreams, "a whole number") ?? maxStreams
    }
}

extension Configuration.Tunnels {
    private enum CodingKeys: String, CodingKey {
        case maxConnections = "max_connections"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        maxConnections = try keys.value(.maxConnections, "a whole number") ?? maxConnections
    }
}

extension Configuration.MCP {
    private enum CodingKeys: String, CodingKey { case all }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        all = try keys.value(.all, "true or false") ?? all
    }
}

extension Configuration.Devices.Client {
    fileprivate static var choice: String { allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ") }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let client = Self(rawValue: try container.decode(String.self)) else {
            throw ConfigurationValueError(path: decoder.codingPath, reason: "must be \(Self.choice)")
        }
        self = client
    }
}

/// An invalid value, with a message in the terms of the file.
struct ConfigurationValueError: Error {
    let path: [any CodingKey]
    /// The predicate of the message, after the key: `must be true or false`.
    let reason: String

    var message: String { "\(Self.keyPath(path)) \(reason)" }

    /// Formats a coding path: `devices.probe_ports, item 2`, or `[[endpoint]] number 1: port` in a list of tables.
    static func keyPath(_ path: [any CodingKey]) -> String {
        guard path.count > 1, let index = path[1].intValue else {
            let keys = path.filter { $0.intValue == nil }.map(\.stringValue).joined(separator: ".")
            let items = path.compactMap(\.intValue).map { ", item \($0 + 1)" }.joined()
            return keys + items
        }
        let table = "[[\(path[0].stringValue)]] number \(index + 1)"
        return path.count == 2 ? table : "\(table): \(keyPath(Array(path[2...])))"
    }
}

/// Decoding with messages. Both functions throw `ConfigurationValueError`.
extension KeyedDecodingContainer {
    /// Returns the value of a key, or nil if the key is absent. `shape` describes a valid value: `true or false`.
    func value<Value: Decodable>(_ key: Key, _ shape: String, as type: Value.Type = Value.self) throws -> Value? {
        guard contains(key) else { return nil }
        do {
            return try decode(type, forKey: key)
        } catch DecodingError.dataCorrupted(let context) {
            // The model's own types describe their invalid values best.
            throw ConfigurationValueError(
                path: context.codingPath,
                reason: "cannot be used: \(context.debugDescription)"
            )
        } catch is DecodingError {
            throw ConfigurationValueError(path: codingPath + [key], reason: "must be \(shape)")
        }
    }

    /// Returns the value of a required key.
    func required<Value: Decodable>(_ key: Key, _ shape: String, as type: Value.Type = Value.self) throws -> Value {
        guard let value = try value(key, shape, as: type) else {
            throw ConfigurationValueError(path: codingPath + [key], reason: "is missing; it must be \(shape)")
        }
        return value
    }
}

/// An `[[endpoint]]` table.
struct ConfiguredEndpoint: Decodable {
    let endpoint: StaticEndpoint

    private enum CodingKeys: String, CodingKey {
        case name, kind, address, port, app
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        let port = try keys.required(.port, "a number from 1 to 65535", as: ConfiguredPort.self).number
        endpoint = StaticEndpoint(
            name: try keys.required(.name, "a text in quotes"),
            kind: try keys.value(.kind, "a text in quotes, such as \"mcp\"") ?? .tcp,
            address: try keys.required(.address, "a numeric address in quotes, or \"localhost\""),
            port: port,
            app: try keys.value(.app, "a bundle identifier in quotes")
        )
    }
}

/// A port in the configuration.
///
/// Decoded as a wide integer first: TOMLKit 0.6 traps, and stops the daemon, if a number does not fit the requested
/// type.
struct ConfiguredPort: Decodable {
    let number: UInt16

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let wide = try container.decode(Int.self)
        guard let number = UInt16(exactly: wide), number > 0 else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\(wide) is no port; ports are 1 to 65535"
            )
        }
        self.number = number
    }
}

/// Converts a path of the command line or the environment to an absolute path.
enum AbsolutePath {
    /// Returns the absolute path; a relative path is resolved in the working directory.
    static func of(_ path: String) -> String {
        path.hasPrefix("/") || path.isEmpty ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}
