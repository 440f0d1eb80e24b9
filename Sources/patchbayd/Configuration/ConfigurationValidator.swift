import Devices
import Logging
import Model

/// Checks what the value types of a configuration cannot express.
struct ConfigurationValidator {
    let configuration: Configuration

    /// Each connection needs two descriptors. By default, Linux allows at most 1,048,576 per process (fs.nr_open).
    private static let maxConnectionsLimit = 500_000

    /// The first error as a message; nil if the configuration is valid.
    var problem: String? {
        brokerProblem ?? apiProblem ?? discoveryProblem ?? devicesProblem ?? tunnelsProblem ?? debugLinkProblem
            ?? endpointsProblem
    }

    /// The additional checks of `--check-config`, which depend on the environment.
    ///
    /// - Throws: `ConfigurationError`.
    func check(_ environment: [String: String]) throws(ConfigurationError) {
        if configuration.devices.enabled { _ = try configuration.usbmuxdAddress(environment) }
        _ = try configuration.usbmuxServerPath(environment)
        _ = try configuration.readvertiseOwner()
    }

    private var brokerProblem: String? {
        let broker = configuration.broker
        if let socket = broker.socket, !Self.isSocketPath(socket) {
            return "broker.socket is \"\(socket)\"; it must be an absolute path of at most "
                + "\(ListenAddress.pathLimit) bytes"
        }
        if let folder = broker.stateDirectory, !folder.hasPrefix("/") || folder.utf8.contains(0) {
            return "broker.state_directory is \"\(folder)\"; it must be an absolute path"
        }
        if Logger.Level(rawValue: broker.logLevel) == nil {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            return "broker.log_level is \"\(broker.logLevel)\"; it must be one of \(levels)"
        }
        return nil
    }

    private var apiProblem: String? {
        let api = configuration.api
        // An origin as browsers send it (RFC 6454, section 6.1). "null" is invalid because every page can send it.
        let wrong = api.allowedOrigins.first { $0.wholeMatch(of: #/[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]-]+/#) == nil }
        return wrong.map {
            "api.allowed_origins has \"\($0)\"; it must have what browsers send, such as \"http://localhost:5173\", "
                + "without a path and in small letters"
        }
    }

    private var discoveryProblem: String? {
        let discovery = configuration.discovery
        let types = discovery.types
        if let twice = types.first(where: { type in types.count { $0 == type } > 1 }) {
            return "discovery.types has \"\(twice)\" twice; it must list each type once, in capitals or not"
        }
        if !discovery.readvertise.isEmpty, !discovery.enabled || !configuration.devices.enabled {
            return "discovery.readvertise needs discovery.enabled = true and devices.enabled = true; set both, or "
                + "remove discovery.readvertise"
        }
        guard discovery.interfaces.isEmpty else { return nil }
        return "discovery.interfaces is empty, so that nothing would be found; it must name interfaces, such as "
            + "[\"*\"] for all, or set discovery.enabled = false"
    }

    private var devicesProblem: String? {
        let devices = configuration.devices
        if let usbmuxd = devices.usbmuxd, (try? UsbmuxAddress(usbmuxd)) == nil {
            return "devices.usbmuxd is \"\(usbmuxd)\"; it must be \"/path\", \"UNIX:/path\", \"host:port\" or "
                + "\"[v6]:port\""
        }
        return Self.outside(1...Self.maxConnectionsLimit, devices.maxStreams, key: "devices.max_streams")
    }

    private var tunnelsProblem: String? {
        let maxConnections = configuration.tunnels.maxConnections
        return Self.outside(1...Self.maxConnectionsLimit, maxConnections, key: "tunnels.max_connections")
    }

    private var debugLinkProblem: String? {
        let names = [("name", configuration.debugLink.name), ("forward", configuration.debugLink.forward)]
        for case (let key, let name?) in names where name.isEmpty || SanitizedText(name).text != name {
            return "debuglink.\(key) is \"\(SanitizedText(name))\"; it must be a Bonjour name of 1 to "
                + "\(SanitizedText.nameLimit) bytes"
        }
        return nil
    }

    private var endpointsProblem: String? {
        for (index, endpoint) in configuration.endpoints.enumerated() {
            guard let problem = endpoint.validationError else { continue }
            return "[[endpoint]] number \(index + 1) (\"\(SanitizedText(endpoint.name))\"): \(problem)"
        }
        let names = configuration.endpoints.map(\.name)
        return names.first { name in names.count { $0 == name } > 1 }.map {
            "two [[endpoint]] tables are called \"\(SanitizedText($0))\"; each needs a name of its own"
        }
    }

    private static func outside(_ range: ClosedRange<Int>, _ value: Int, key: String) -> String? {
        range.contains(value)
            ? nil : "\(key) is \(value); it must be a whole number from \(range.lowerBound) to \(range.upperBound)"
    }

    private static func isSocketPath(_ path: String) -> Bool {
        path.hasPrefix("/") && path.utf8.count <= ListenAddress.pathLimit && !path.utf8.contains(0)
    }
}
