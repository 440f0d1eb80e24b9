import Devices
import JSON
import Logging
import Model
import SystemIO
import TOML

/// Parses the TOML file: tables and keys in snake case, all of them optional. Everything that is not understood is an
/// error.
extension Configuration {
    /// Each connection needs two descriptors. By default, Linux allows at most 1,048,576 per process (fs.nr_open).
    fileprivate static let connectionLimits = 1...500_000

    /// Reads the tables of the file.
    ///
    /// - Parameters:
    ///   - file: The whole file.
    ///   - profileKinds: The endpoint kinds that profiles describe.
    /// - Throws: `TOMLError` with the line and the valid form.
    init(_ file: TOMLTable, profileKinds: [EndpointKind]) throws(TOMLError) {
        self.init()
        try file.allow(["broker", "api", "discovery", "devices", "tunnels", "mcp", "debuglink", "endpoint"])
        if let table = try file.table("broker") { broker = try Broker(table) }
        if let table = try file.table("api") { api = try API(table) }
        // Discovery depends on the devices.
        if let table = try file.table("devices") { devices = try Devices(table) }
        if let table = try file.table("discovery") {
            discovery = try Discovery(table)
            guard discovery.readvertise.isEmpty || discovery.enabled && devices.enabled else {
                throw table.error(
                    "readvertise",
                    "needs discovery.enabled = true and devices.enabled = true; set both, or remove the key"
                )
            }
        }
        if let table = try file.table("tunnels") {
            try table.allow(["max_connections"])
            tunnels.maxConnections =
                try table.number("max_connections", in: Self.connectionLimits) ?? tunnels.maxConnections
        }
        if let table = try file.table("mcp") {
            try table.allow(["all"])
            mcp.all = try table.flag("all")
        }
        if let table = try file.table("debuglink") { debugLink = try DebugLink(table) }
        let kinds = EndpointKind.builtIn + profileKinds + discovery.types.map { EndpointKind(serviceType: $0) }
        for table in try file.tables("endpoint") {
            let endpoint = try StaticEndpoint(table, kinds: kinds)
            guard !endpoints.contains(where: { $0.name == endpoint.name }) else {
                throw table.error("name", "is \"\(endpoint.name)\", which is the name of another endpoint")
            }
            endpoints.append(endpoint)
        }
    }
}

extension Configuration.Broker {
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        self.init()
        try table.allow(["socket", "state_directory", "log_level"])
        socket = try table.optional("socket", "an absolute path of at most \(ListenAddress.pathLimit) bytes") { json in
            Self.absolutePath(json).flatMap { $0.utf8.count <= ListenAddress.pathLimit ? $0 : nil }
        }
        stateDirectory = try table.optional("state_directory", "an absolute path in quotes", Self.absolutePath)
        let levels = Logger.Level.allCases.map(\.rawValue)
        logLevel =
            try table.optional("log_level", "one of \(levels.joined(separator: ", "))") { json in
                json.string.flatMap { levels.contains($0) ? $0 : nil }
            } ?? logLevel
    }

    private static func absolutePath(_ json: JSON) -> String? {
        json.string.flatMap { $0.hasPrefix("/") && !$0.utf8.contains(0) ? $0 : nil }
    }
}

extension Configuration.API {
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        self.init()
        try table.allow(["tcp", "port", "allowed_origins", "allow_any_user", "remote"])
        tcp = try table.flag("tcp", default: tcp)
        port = try table.optional("port", TOMLTable.portShape, \.port) ?? port
        // An origin as browsers send it (RFC 6454, section 6.1). "null" is invalid because every page can send it.
        allowedOrigins = try table.list(
            "allowed_origins",
            of: "an origin as browsers send it, such as \"http://localhost:5173\", without a path and in small letters"
        ) { json in
            json.string.flatMap { $0.wholeMatch(of: #/[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]-]+/#) == nil ? nil : $0 }
        }
        allowAnyUser = try table.flag("allow_any_user")
        remote = try table.optional(
            "remote",
            "a numeric address with a port, such as \"\(RemoteSpec.standardAddress)\" or \"[::]:7283\""
        ) { json in json.string.flatMap(SocketAddress.init(withPort:)) }
    }
}

extension Configuration.Discovery {
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        self.init()
        try table.allow(["enabled", "types", "interfaces", "deny_interfaces", "readvertise", "readvertise_user"])
        enabled = try table.flag("enabled", default: enabled)
        types = try table.list("types", of: "a service type such as \"_mcp._tcp\"", default: types) { json in
            json.string.flatMap { ServiceType($0) }
        }
        if let twice = types.first(where: { type in types.count { $0 == type } > 1 }) {
            throw table.error("types", "has \"\(twice)\" twice; it must list each type once, in capitals or not")
        }
        let shape = "the name of interfaces in quotes, such as \"eth*\""
        interfaces = try table.list("interfaces", of: shape, default: interfaces, \.string)
        guard !interfaces.isEmpty else {
            throw table.error(
                "interfaces",
                "is empty, so that nothing would be found; name interfaces, such as [\"*\"] for all, or set "
                    + "discovery.enabled = false"
            )
        }
        denyInterfaces = try table.list("deny_interfaces", of: shape, default: denyInterfaces, \.string)
        readvertise = try table.list("readvertise", of: "\"usb\"") { json in
            json.string.flatMap(Configuration.ReadvertisedTransport.init(rawValue:))
        }
        readvertiseUser = try table.text("readvertise_user")
    }
}

extension Configuration.Devices {
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        self.init()
        try table.allow(["enabled", "client", "usbmuxd", "serve_usbmuxd", "probe_ports", "max_streams"])
        enabled = try table.flag("enabled", default: enabled)
        let clients = Client.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
        client = try table.optional("client", clients) { $0.string.flatMap(Client.init(rawValue:)) } ?? client
        usbmuxd = try table.optional("usbmuxd", "\"/path\", \"UNIX:/path\", \"host:port\" or \"[v6]:port\"") { json in
            json.string.flatMap { (try? UsbmuxAddress($0)) == nil ? nil : $0 }
        }
        let path = "\"unix:/path\": the mode of the unix socket keeps other users from your phones"
        serveUsbmuxd = try table.optional("serve_usbmuxd", path) { json in
            json.string.flatMap { (try? UsbmuxAddress($0))?.path == nil ? nil : $0 }
        }
        if serveUsbmuxd != nil, !enabled {
            throw table.error("serve_usbmuxd", "needs devices.enabled = true; remove one of the two settings")
        }
        probePorts = try table.list("probe_ports", of: TOMLTable.portShape, default: probePorts, \.port)
        maxStreams = try table.number("max_streams", in: Configuration.connectionLimits) ?? maxStreams
    }
}

extension Configuration.DebugLink {
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        self.init()
        try table.allow(["enabled", "listen", "name", "forward"])
        enabled = try table.flag("enabled")
        let address = "a numeric address with a port, such as \"0.0.0.0:9999\" or \"[::]:0\""
        listen =
            try table.optional("listen", address) { json in
                guard case .tcp(let host?, let port)? = json.string.flatMap({ ListenAddress($0) }) else { return nil }
                return SocketAddress(numeric: host, port: port)
            } ?? listen
        name = try Self.name("name", table)
        forward = try Self.name("forward", table)
    }

    private static func name(_ key: String, _ table: TOMLTable) throws(TOMLError) -> String? {
        try table.optional(key, "a Bonjour name of 1 to \(SanitizedText.nameLimit) bytes") { json in
            json.string.flatMap { $0.isEmpty || SanitizedText($0).text != $0 ? nil : $0 }
        }
    }
}

extension StaticEndpoint {
    /// Parses a table of `[[endpoint]]`.
    fileprivate init(_ table: TOMLTable, kinds: [EndpointKind]) throws(TOMLError) {
        try table.allow(["name", "kind", "address", "port", "app"])
        let kind = try table.text("kind").map { EndpointKind($0) } ?? .tcp
        if let problem = kind.validationError(among: kinds) { throw table.error("kind", saying: problem.message) }
        self.init(
            name: try table.requiredText("name"),
            kind: kind,
            address: try table.required("address", "a numeric address in quotes, or \"localhost\"", \.string),
            port: try table.required("port", TOMLTable.portShape, \.port),
            app: try table.text("app")
        )
        if let problem = validationError { throw table.error(problem.key, saying: problem.message) }
    }
}

extension TOMLTable {
    fileprivate static let portShape = "a number from 1 to 65535"
}

extension JSON {
    fileprivate var port: UInt16? { int.flatMap(UInt16.init(exactly:)).flatMap { $0 > 0 ? $0 : nil } }
}
