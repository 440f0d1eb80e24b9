import Model
import SystemIO

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
/// Decoded as a wide integer first: TOMLKit 0.6 traps, and stops the broker, if a number does not fit the requested
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

/// A numeric address with a port in the configuration: `0.0.0.0:9999`, `[::]:0`.
struct ConfiguredListenAddress: Equatable, Sendable, Decodable {
    /// All interfaces, and any free port.
    static let anyPort = ConfiguredListenAddress(address: .ipv6(0, port: 0, scope: 0))

    let address: SocketAddress

    init(address: SocketAddress) { self.address = address }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard case .tcp(let host?, let port)? = ListenAddress(text),
            let address = SocketAddress(numeric: host, port: port)
        else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(SanitizedText(text))\" is no numeric address with a port; write it like "
                    + "\"0.0.0.0:9999\" or \"[::]:0\""
            )
        }
        self.address = address
    }
}
