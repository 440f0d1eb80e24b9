import Model

/// The file's spelling: tables and keys in snake case, each of them optional.
///
/// Written by hand because a synthesised decoder demands every key, and strict decoding wants to see each key asked for.
extension Configuration: Decodable {
    private enum Table: String, CodingKey {
        case broker, discovery, devices, tunnels
        case endpoints = "endpoint"
    }

    init(from decoder: any Decoder) throws {
        let tables = try decoder.container(keyedBy: Table.self)
        broker = try tables.decodeIfPresent(Broker.self, forKey: .broker) ?? Broker()
        discovery = try tables.decodeIfPresent(Discovery.self, forKey: .discovery) ?? Discovery()
        devices = try tables.decodeIfPresent(Devices.self, forKey: .devices) ?? Devices()
        tunnels = try tables.decodeIfPresent(Tunnels.self, forKey: .tunnels) ?? Tunnels()
        endpoints = try tables.decodeIfPresent([ConfiguredEndpoint].self, forKey: .endpoints)?.map(\.endpoint) ?? []
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
        socket = try keys.decodeIfPresent(String.self, forKey: .socket)
        stateDirectory = try keys.decodeIfPresent(String.self, forKey: .stateDirectory)
        logLevel = try keys.decodeIfPresent(String.self, forKey: .logLevel) ?? logLevel
    }
}

extension Configuration.Discovery {
    private enum CodingKeys: String, CodingKey {
        case enabled, types, interfaces
        case denyInterfaces = "deny_interfaces"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.decodeIfPresent(Bool.self, forKey: .enabled) ?? enabled
        types = try keys.decodeIfPresent([ServiceType].self, forKey: .types) ?? types
        interfaces = try keys.decodeIfPresent([String].self, forKey: .interfaces) ?? interfaces
        denyInterfaces = try keys.decodeIfPresent([String].self, forKey: .denyInterfaces) ?? denyInterfaces
    }
}

extension Configuration.Devices {
    private enum CodingKeys: String, CodingKey {
        case enabled, client, usbmuxd, facade
        case probePorts = "probe_ports"
        case maxStreams = "max_streams"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        enabled = try keys.decodeIfPresent(Bool.self, forKey: .enabled) ?? enabled
        client = try keys.decodeIfPresent(Client.self, forKey: .client) ?? client
        usbmuxd = try keys.decodeIfPresent(String.self, forKey: .usbmuxd)
        facade = try keys.decodeIfPresent(String.self, forKey: .facade)
        probePorts = try keys.decodeIfPresent([ConfiguredPort].self, forKey: .probePorts)?.map(\.number) ?? probePorts
        maxStreams = try keys.decodeIfPresent(Int.self, forKey: .maxStreams) ?? maxStreams
    }
}

extension Configuration.Tunnels {
    private enum CodingKeys: String, CodingKey {
        case maxConnections = "max_connections"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        maxConnections = try keys.decodeIfPresent(Int.self, forKey: .maxConnections) ?? maxConnections
    }
}
