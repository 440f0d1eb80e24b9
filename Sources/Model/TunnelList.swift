/// Every tunnel, those that wait included: the answer to `GET /v1/tunnels`.
package struct TunnelList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let tunnels: [Tunnel]

    package init(tunnels: [Tunnel]) {
        schema = 1
        self.tunnels = tunnels
    }
}
