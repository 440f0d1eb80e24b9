import Devices
import Model

/// Decodes the TOML file: tables and keys in snake case, all of them optional.
///
/// Errors use the file's keys (`ConfigurationValueError`). The decoder is written by hand because a synthesized one
/// requires every key. Strict decoding also needs each key to be requested.
extension Configuration: Decodable {
    private enum Table: String, CodingKey {
        case broker, api, discovery, devices, tunnels, mcp
        case debugLink = "debuglink"
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
        debugLink = try tables.value(.debugLink, "a table: [debuglink]") ?? DebugLink()
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
        case allowAnyUser = "allow_any_user"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        tcp = try keys.value(.tcp, "true or false") ?? tcp
        port = try keys.value(.port, "a number from 1 to 65535", as: ConfiguredPort.self)?.number ?? port
        allowedOrigins = try keys.value(.allowedOrigins, "a list such as [\"http://localhost:5173\"]") ?? allowedOrigins
        allowAnyUser = try keys.value(.allowAnyUser, "true or false") ?? allowAnyUser
    }
}

extension Configuration.Discovery {
    private enum CodingKeys: String, CodingKey {
        case enabled, types, interfaces, readvertise
        case denyInterfaces = "deny_interfaces"
        case readvertiseUser = "readvertise_user"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.value(.enabled, "true or false") ?? enabled
        types = try keys.value(.types, "a list such as [\"_mcp._tcp\"]") ?? types
        interfaces = try keys.value(.interfaces, "a list such as [\"eth*\"]") ?? interfaces
        denyInterfaces = try keys.value(.denyInterfaces, "a list such as [\"docker*\"]") ?? denyInterfaces
        readvertise = try keys.value(.readvertise, "[] or [\"usb\"]") ?? readvertise
        readvertiseUser = try keys.value(.readvertiseUser, "the name of a user in quotes")
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

extension Configuration.DebugLink {
    private enum CodingKeys: String, CodingKey { case enabled, listen, name, forward }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.value(.enabled, "true or false") ?? enabled
        listen = try keys.value(.listen, "an address in quotes, such as \"[::]:0\"") ?? listen
        name = try keys.value(.name, "a text in quotes")
        forward = try keys.value(.forward, "the name of a state debugger in quotes")
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

extension Configuration.ReadvertisedTransport {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let transport = Self(rawValue: try container.decode(String.self)) else {
            throw ConfigurationValueError(path: decoder.codingPath, reason: "must be \"usb\"")
        }
        self = transport
    }
}
