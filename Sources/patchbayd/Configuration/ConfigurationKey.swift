import Devices
import Model
import SystemIO

/// One key of the configuration file: its name, its value, and when a change applies.
struct ConfigurationKey: Sendable {
    /// `table.key`; `endpoint` stands for all tables of `[[endpoint]]`.
    let name: String
    /// True if a reload applies a change. Other keys need a restart.
    let isReloadable: Bool
    /// The value; nil if the key is absent and its default depends on the environment.
    let value: @Sendable (Configuration) -> JSON?

    private init(
        _ name: String,
        isReloadable: Bool = false,
        _ value: @escaping @Sendable (Configuration) -> JSON?
    ) {
        self.name = name
        self.isReloadable = isReloadable
        self.value = value
    }

    /// Every key, in the order of `config/patchbay.example.toml`.
    static let all: [ConfigurationKey] = [
        .init("broker.socket") { text($0.broker.socket) },
        .init("broker.state_directory") { text($0.broker.stateDirectory) },
        .init("broker.log_level", isReloadable: true) { text($0.broker.logLevel) },
        .init("api.tcp") { .bool($0.api.tcp) },
        .init("api.port") { number(Int($0.api.port)) },
        .init("api.allowed_origins") { texts($0.api.allowedOrigins) },
        .init("api.allow_any_user") { .bool($0.api.allowAnyUser) },
        .init("api.remote") { text($0.api.remote?.description) },
        .init("audit.max_age", isReloadable: true) { text($0.audit.maxAge?.description) },
        .init("audit.max_size", isReloadable: true) { text($0.audit.maxSize?.description) },
        .init("discovery.enabled") { .bool($0.discovery.enabled) },
        .init("discovery.types") { texts($0.discovery.types.map(\.description)) },
        .init("discovery.interfaces") { texts($0.discovery.interfaces) },
        .init("discovery.deny_interfaces") { texts($0.discovery.denyInterfaces) },
        .init("discovery.readvertise") { texts($0.discovery.readvertise.map(\.rawValue)) },
        .init("discovery.readvertise_user") { text($0.discovery.readvertiseUser) },
        .init("devices.enabled") { .bool($0.devices.enabled) },
        .init("devices.client") { text($0.devices.client.rawValue) },
        .init("devices.usbmuxd") { text($0.devices.usbmuxd) },
        .init("devices.serve_usbmuxd") { text($0.devices.serveUsbmuxd) },
        .init("devices.probe_ports") { .array($0.devices.probePorts.map { number(Int($0)) }) },
        .init("devices.max_streams") { number($0.devices.maxStreams) },
        .init("tunnels.max_connections") { number($0.tunnels.maxConnections) },
        .init("mcp.all") { .bool($0.mcp.all) },
        .init("debuglink.enabled") { .bool($0.debugLink.enabled) },
        .init("debuglink.listen") { text($0.debugLink.listen.description) },
        .init("debuglink.name") { text($0.debugLink.name) },
        .init("debuglink.forward") { text($0.debugLink.forward) },
        .init("team.etcd") { texts($0.team.etcd) },
        .init("team.etcd_ca") { text($0.team.etcdAuthority) },
        .init("team.host") { text($0.team.host?.text) },
        .init("team.listen") { text($0.team.listen.description) },
        .init("team.addresses") { texts($0.team.addresses.map(\.description)) },
        .init("endpoint", isReloadable: true) { .array($0.endpoints.map { .object(object(of: $0)) }) },
    ]

    /// The names of all tables, in their order.
    static let tables = all.map { String($0.name.prefix { $0 != "." }) }.reduce(into: [String]()) { tables, name in
        if tables.last != name { tables.append(name) }
    }

    /// Returns the names of the keys of one table.
    static func names(in table: String) -> [String] {
        all.filter { $0.name.hasPrefix("\(table).") }.map { String($0.name.dropFirst(table.count + 1)) }
    }

    /// The value as TOML. A JSON text without a table is valid TOML with the same meaning.
    func shownValue(in configuration: Configuration) -> String? { value(configuration)?.text }

    private static func text(_ text: String?) -> JSON? { text.map { .string($0) } }
    private static func texts(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }
    private static func number(_ number: Int) -> JSON { .number(JSONNumber(number)) }

    private static func object(of endpoint: StaticEndpoint) -> JSONObject {
        var object: JSONObject = [
            "name": .string(endpoint.name), "address": .string(endpoint.address), "port": number(Int(endpoint.port)),
            "kind": .string(endpoint.kind.text),
        ]
        if let app = endpoint.app { object["app"] = .string(app) }
        if let path = endpoint.path { object["path"] = .string(path) }
        return object
    }
}
