import API
import Model
import Registry
import TOML

/// The tables `[[endpoint]]`.
extension ConfigurationKey {
    static let endpoint = ConfigurationKey(
        "endpoint",
        \.endpoints,
        ValueFormat(
            "a table",
            // Only `read` knows the kinds of endpoints.
            parse: { _ in nil },
            json: { .array($0.map { .object($0.keys) }) }
        ),
        read: StaticEndpoint.read,
        reload: { configuration, targets in
            for endpoint in await targets.staticEndpoints.replaceConfigured(configuration.endpoints) {
                await targets.approvals.configurationEnded(of: endpoint)
            }
        },
        """
        Static endpoints, any number. An endpoint needs name, address and port.
        [[endpoint]]
        The displayed name, which must be unique.
        name = "staging"
        A numeric address, or "localhost".
        address = "192.168.1.30"
        port = 8080
        The protocol: appreveal, mcp (tools for agents), dart-vm (Flutter), web (Chrome DevTools), tcp (any other server),
        the name of a profile, or a service of `types`. Default: "tcp".
        kind = "mcp"
        The app's bundle identifier, used by grants for an app. Default: none.
        app = "com.example.shop"
        The path of an MCP server. Default: /mcp and then /.
        path = "/api/mcp"
        """
    )
}

extension StaticEndpoint {
    fileprivate static let read: ConfigurationKey.Reader<[StaticEndpoint]> = {
        (file, context, configuration) throws(TOMLError) in
        // The kinds of profiles that cannot be read are unknown.
        let kinds = context.profileKinds.map { profileKinds in
            EndpointKind.builtIn + profileKinds + configuration.discovery.types.map { EndpointKind(serviceType: $0) }
        }
        return try list(try file.tables("endpoint"), kinds: kinds)
    }

    private static func list(_ tables: [TOMLTable], kinds: [EndpointKind]?) throws(TOMLError) -> [StaticEndpoint] {
        var errors = TOMLErrorCollector()
        var names: Set<String> = []
        let endpoints = tables.compactMap { table in
            let endpoint = StaticEndpoint(table, kinds: kinds, errors: &errors)
            errors.attempt { () throws(TOMLError) in
                guard let name = table.values["name"]?.string, !names.insert(name).inserted else { return }
                throw table.error("name", "is \"\(name)\", which is the name of another endpoint")
            }
            return endpoint
        }
        if let error = TOMLError.joining(errors.errors) { throw error }
        return endpoints
    }

    /// Parses a table of `[[endpoint]]`; nil with an error.
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - kinds: The kinds that exist; nil accepts every kind.
    ///   - errors: Gets each error.
    private init?(_ table: TOMLTable, kinds: [EndpointKind]?, errors: inout TOMLErrorCollector) {
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
        let port = errors.value { () throws(TOMLError) in
            try table.required("port", .port)
        }
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

    /// The keys of the table.
    fileprivate var keys: JSONObject {
        var keys: JSONObject = [
            "name": .string(name), "address": .string(address), "port": .number(JSONNumber(Int(port))),
            "kind": .string(kind.text),
        ]
        if let app { keys["app"] = .string(app) }
        if let path { keys["path"] = .string(path) }
        return keys
    }
}
