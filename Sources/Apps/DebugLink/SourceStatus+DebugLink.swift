package import Model
package import SystemIO

/// The state debugger in `patchbay status`.
extension SourceStatus {
    /// The state debugger if the configuration disables it.
    package static let debugLinkOff = SourceStatus(
        name: "debuglink",
        state: .off,
        detail: "turned off; debuglink.enabled = true turns it on"
    )

    /// Describes a running state debugger.
    ///
    /// - Parameters:
    ///   - address: The address on which it listens.
    ///   - apps: The connected clients, and the disconnected apps whose states are held.
    ///   - refusals: The clients that sent no message of an app.
    ///   - forward: The name of the other debugger that gets the frames; nil for none.
    package init(debugLinkAt address: SocketAddress, apps: [DebugApp], refusals: DebugRefusals, forward: String?) {
        let connected = apps.filter(\.isConnected)
        let known = connected.count { $0.place != nil }
        var parts = ["listens on \(address)", "\(known) \(known == 1 ? "app" : "apps") connected"]
        if connected.count > known { parts.append("\(connected.count - known) without a message yet") }
        let held = apps.count - connected.count
        if held > 0 { parts.append("\(held) disconnected with held states") }
        if let forward {
            let forwarded = connected.count(where: \.isForwarded)
            parts.append("forwards \(forwarded) of \(known) to \"\(SanitizedText(forward))\"")
        }
        if let peer = refusals.lastPeer, let reason = refusals.lastReason {
            parts.append("\(refusals.count) refused, the last one from \(peer): \(reason)")
        }
        self.init(name: "debuglink", state: .ok, detail: parts.joined(separator: ", "))
    }
}
