/// One connection through a tunnel that did not come about: the `failure` event of a held tunnel.
package struct TunnelConnectionFailure: Hashable, Sendable, Codable {
    /// The tunnel's id.
    package let tunnel: String
    package let reason: DialError.Reason
    /// A sentence for a person.
    package let detail: String

    package init(tunnel: String, reason: DialError.Reason, detail: String) {
        self.tunnel = tunnel
        self.reason = reason
        self.detail = detail
    }
}
