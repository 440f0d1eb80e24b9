import Model

/// One line of `--watch --json`: what happened, with the members that belong to it.
struct WatchEvent: Encodable {
    /// `snapshot`, `endpoint` or `devices`.
    var event: String
    var revision: UInt64?
    var kind: EndpointChange.Kind?
    var endpoint: Endpoint?
    var endpoints: [Endpoint]?
    var devices: [Device]?
}
