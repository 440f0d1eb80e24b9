/// A port of a phone that leads to a port of this machine: an app of the phone connects, and the adb server dials.
///
/// Desired state like a tunnel: it stays while the phone is unplugged, and while adb or the broker restarts.
package struct ReverseTunnel: Hashable, Sendable, Codable {
    package let udid: UDID
    /// The port on the phone's loopback; at least 1.
    package let phonePort: UInt16
    /// The port on the loopback of the adb server's machine; at least 1.
    package let localPort: UInt16
    /// `waiting` without the phone, and `failed` if the phone refuses.
    package let state: Tunnel.State

    package init(udid: UDID, phonePort: UInt16, localPort: UInt16, state: Tunnel.State) {
        (self.udid, self.phonePort, self.localPort, self.state) = (udid, phonePort, localPort, state)
    }
}

/// The body of `PUT /v1/reverse-tunnels/{udid}/{port}`.
package struct ReverseTunnelSpec: Hashable, Sendable, Codable {
    package let localPort: UInt16

    package init(localPort: UInt16) { self.localPort = localPort }
}
