import Devices
import Model
import Logging
import SystemIO
import TOML

/// Parses the TOML file: tables and keys in snake case, all of them optional. Everything that is not understood is an
/// error.
extension Configuration {
    /// Each connection needs two descriptors. By default, Linux allows at most 1,048,576 per process (fs.nr_open).
    fileprivate static let connectionLimits = 1...500_000

    /// The age of audit entries: a day to 100 years.
    fileprivate static let auditAges = 86_400...3_153_600_000
    /// The size of the audit log: two segments of 8 MiB to 1 TB.
    fileprivate static let auditSizes = 17_000_000...1_000_000_000_000

    /// Reads the tables of the file. A key with an error keeps its default.
    ///
    /// - Parameters:
    ///   - file: The whole file.
    ///   - profileKinds: The endpoint kinds that profiles describe; nil accepts every kind.
    ///   - errors: Gets each error, with its position and the valid form.
    init(_ file: TOMLTable, profileKinds: [EndpointKind]?, errors: inout TOMLErrorCollector) {
        self.init()
        errors.attempt { () throws(TOMLError) in try file.allow(ConfigurationKey.tables) }
        func read(_ name: String, _ body: (TOMLTable, inout TOMLErrorCollector) -> Void) {
            guard let table = errors.value({ () throws(TOMLError) in try file.table(name) }) ?? nil else { return }
            errors.attempt { () throws(TOMLError) in
                try table.allow(ConfigurationKey.names(in: name), others: ConfigurationKey.all.map(\.name))
            }
            body(table, &errors)
        }
        read("broker") { broker.read($0, &$1) }
        read("api") { api.read($0, &$1) }
        read("audit") { audit.read($0, &$1) }
        // Discovery depends on the devices.
        read("devices") { devices.read($0, &$1) }
        read("discovery") { table, errors in
            discovery.read(table, &errors)
            errors.attempt { () throws(TOMLError) in
                guard !discovery.readvertise.isEmpty, !discovery.enabled || !devices.enabled else { return }
                throw table.error(
                    "readvertise",
                    "needs discovery.enabled = true and devices.enabled = true; set both, or remove the key"
                )
            }
        }
        read("tunnels") { table, errors in
            errors.attempt { () throws(TOMLError) in
                tunnels.maxConnections =
                    try table.number("max_connections", in: Self.connectionLimits) ?? tunnels.maxConnections
            }
        }
        read("mcp") { table, errors in
            errors.attempt { () throws(TOMLError) in mcp.all = try table.flag("all") }
        }
        read("debuglink") { debugLink.read($0, &$1) }
        read("team") { team.read($0, &$1) }
        readEndpoints(file, profileKinds: profileKinds, &errors)
    }

    private mutating func readEndpoints(
        _ file: TOMLTable,
        profileKinds: [EndpointKind]?,
        _ errors: inout TOMLErrorCollector
    ) {
        let kinds = profileKinds.map { profileKinds in
            EndpointKind.builtIn + profileKinds + discovery.types.map { EndpointKind(serviceType: $0) }
        }
        var names: Set<String> = []
        for table in errors.value({ () throws(TOMLError) in try file.tables("endpoint") }) ?? [] {
            let endpoint = StaticEndpoint(table, kinds: kinds, errors: &errors)
            errors.attempt { () throws(TOMLError) in
                guard let name = table.values["name"]?.string, !names.insert(name).inserted else { return }
                throw table.error("name", "is \"\(name)\", which is the name of another endpoint")
            }
            if let endpoint { endpoints.append(endpoint) }
        }
    }
}

extension Configuration.Broker {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in
            socket = try table.optional("socket", "an absolute path of at most \(ListenAddress.pathLimit) bytes") {
                json in
                Self.absolutePath(json).flatMap { $0.utf8.count <= ListenAddress.pathLimit ? $0 : nil }
            }
        }
        errors.attempt { () throws(TOMLError) in
            stateDirectory = try table.optional("state_directory", "an absolute path in quotes", Self.absolutePath)
        }
        let levels = Self.logLevels
        errors.attempt { () throws(TOMLError) in
            logLevel =
                try table.optional("log_level", "one of \(levels.joined(separator: ", "))") { json in
                    json.string.flatMap { levels.contains($0) ? $0 : nil }
                } ?? logLevel
        }
    }

    /// The valid values of `log_level` and `--log-level`.
    static let logLevels = Logger.Level.allCases.map(\.rawValue)

    private static func absolutePath(_ json: JSON) -> String? {
        json.string.flatMap { $0.hasPrefix("/") && !$0.utf8.contains(0) ? $0 : nil }
    }
}

extension Configuration.API {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in tcp = try table.flag("tcp", default: tcp) }
        errors.attempt { () throws(TOMLError) in port = try table.optional("port", TOMLTable.portShape, \.port) ?? port
        }
        errors.attempt { () throws(TOMLError) in
            // An origin as browsers send it (RFC 6454, section 6.1). "null" is invalid because every page can send it.
            allowedOrigins = try table.list(
                "allowed_origins",
                of: "an origin as browsers send it, such as \"http://localhost:5173\", without a path and in small "
                    + "letters"
            ) { json in
                json.string.flatMap { $0.wholeMatch(of: #/[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]-]+/#) == nil ? nil : $0 }
            }
        }
        errors.attempt { () throws(TOMLError) in allowAnyUser = try table.flag("allow_any_user") }
        errors.attempt { () throws(TOMLError) in
            remote = try table.optional(
                "remote",
                "a numeric address with a port, such as \"\(RemoteSpec.standardAddress)\" or \"[::]:7283\""
            ) { json in json.string.flatMap(SocketAddress.init(withPort:)) }
        }
    }
}

extension Configuration.Audit {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in maxAge = try table.duration("max_age", in: Configuration.auditAges) }
        errors.attempt { () throws(TOMLError) in
            let sizes = Configuration.auditSizes
            let (least, most) = (ByteCountText(bytes: sizes.lowerBound), ByteCountText(bytes: sizes.upperBound))
            maxSize = try table.optional(
                "max_size",
                "a size in quotes such as \"500MB\" or \"2GB\", from \(least) to \(most)"
            ) { json in
                json.string.flatMap { ByteCountText($0) }.flatMap { sizes.contains($0.bytes) ? $0 : nil }
            }
        }
    }
}

extension Configuration.Discovery {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in enabled = try table.flag("enabled", default: enabled) }
        errors.attempt { () throws(TOMLError) in
            let types = try table.list("types", of: "a service type such as \"_mcp._tcp\"", default: types) { json in
                json.string.flatMap { ServiceType($0) }
            }
            if let twice = types.first(where: { type in types.count { $0 == type } > 1 }) {
                throw table.error("types", "has \"\(twice)\" twice; it must list each type once, in capitals or not")
            }
            self.types = types
        }
        let shape = "the name of interfaces in quotes, such as \"eth*\""
        errors.attempt { () throws(TOMLError) in
            let interfaces = try table.list("interfaces", of: shape, default: interfaces, \.string)
            guard !interfaces.isEmpty else {
                throw table.error(
                    "interfaces",
                    "is empty, so that nothing would be found; name interfaces, such as [\"*\"] for all, or set "
                        + "discovery.enabled = false"
                )
            }
            self.interfaces = interfaces
        }
        errors.attempt { () throws(TOMLError) in
            denyInterfaces = try table.list("deny_interfaces", of: shape, default: denyInterfaces, \.string)
        }
        errors.attempt { () throws(TOMLError) in
            readvertise = try table.list("readvertise", of: "\"usb\"") { json in
                json.string.flatMap(Configuration.ReadvertisedTransport.init(rawValue:))
            }
        }
        errors.attempt { () throws(TOMLError) in readvertiseUser = try table.text("readvertise_user") }
    }
}

extension Configuration.Devices {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in enabled = try table.flag("enabled", default: enabled) }
        errors.attempt { () throws(TOMLError) in
            let clients = Client.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
            client = try table.optional("client", clients) { $0.string.flatMap(Client.init(rawValue:)) } ?? client
        }
        errors.attempt { () throws(TOMLError) in
            let forms = "\"/path\", \"UNIX:/path\", \"host:port\" or \"[v6]:port\""
            usbmuxd = try table.optional("usbmuxd", forms) { json in
                json.string.flatMap { (try? UsbmuxAddress($0)) == nil ? nil : $0 }
            }
        }
        errors.attempt { () throws(TOMLError) in
            let path = "\"unix:/path\": the mode of the unix socket keeps other users from your phones"
            serveUsbmuxd = try table.optional("serve_usbmuxd", path) { json in
                json.string.flatMap { (try? UsbmuxAddress($0))?.path == nil ? nil : $0 }
            }
            if serveUsbmuxd != nil, !enabled {
                throw table.error("serve_usbmuxd", "needs devices.enabled = true; remove one of the two settings")
            }
        }
        errors.attempt { () throws(TOMLError) in
            probePorts = try table.list("probe_ports", of: TOMLTable.portShape, default: probePorts, \.port)
        }
        errors.attempt { () throws(TOMLError) in
            maxStreams = try table.number("max_streams", in: Configuration.connectionLimits) ?? maxStreams
        }
    }
}

extension Configuration.DebugLink {
    fileprivate mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in enabled = try table.flag("enabled") }
        errors.attempt { () throws(TOMLError) in
            let address = "a numeric address with a port, such as \"0.0.0.0:9999\" or \"[::]:0\""
            listen =
                try table.optional("listen", address) { json in
                    guard case .tcp(let host?, let port)? = json.string.flatMap({ ListenAddress($0) }) else {
                        return nil
                    }
                    return SocketAddress(numeric: host, port: port)
                } ?? listen
        }
        errors.attempt { () throws(TOMLError) in name = try Self.name("name", table) }
        errors.attempt { () throws(TOMLError) in forward = try Self.name("forward", table) }
    }

    private static func name(_ key: String, _ table: TOMLTable) throws(TOMLError) -> String? {
        try table.optional(key, "a Bonjour name of 1 to \(SanitizedText.nameLimit) bytes") { json in
            json.string.flatMap { $0.isEmpty || SanitizedText($0).text != $0 ? nil : $0 }
        }
    }
}

extension StaticEndpoint {
    /// Parses a table of `[[endpoint]]`; nil with an error.
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - kinds: The kinds that exist; nil accepts every kind.
    ///   - errors: Gets each error.
    fileprivate init?(_ table: TOMLTable, kinds: [EndpointKind]?, errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in try table.allow(["name", "kind", "address", "port", "app", "path"]) }
        let name = errors.value { () throws(TOMLError) in try table.requiredText("name") }
        let kind = errors.value { () throws(TOMLError) in
            let kind = try table.text("kind").map { EndpointKind($0) } ?? .tcp
            guard let kinds, let problem = kind.validationError(among: kinds) else { return kind }
            throw table.error("kind", saying: problem.message)
        }
        let address = errors.value { () throws(TOMLError) in
            try table.required("address", "a numeric address in quotes, or \"localhost\"", \.string)
        }
        let port = errors.value { () throws(TOMLError) in try table.required("port", TOMLTable.portShape, \.port) }
        let app = errors.value { () throws(TOMLError) in try table.text("app") }
        let path = errors.value { () throws(TOMLError) in try table.text("path") }
        // A key with an error gets a valid value, so that the other keys are checked too.
        self.init(
            name: name ?? "-",
            kind: kind ?? .tcp,
            address: address ?? "localhost",
            port: port ?? 1,
            app: app ?? nil,
            path: path ?? nil
        )
        let problems = validationErrors
        for problem in problems {
            errors.attempt { () throws(TOMLError) in throw table.error(problem.key, saying: problem.message) }
        }
        guard problems.isEmpty, name != nil, kind != nil, address != nil, port != nil, app != nil, path != nil else {
            return nil
        }
    }
}

extension TOMLTable {
    fileprivate static let portShape = "a number from 1 to 65535"
}

extension JSON {
    fileprivate var port: UInt16? { int.flatMap(UInt16.init(exactly:)).flatMap { $0 > 0 ? $0 : nil } }
}
