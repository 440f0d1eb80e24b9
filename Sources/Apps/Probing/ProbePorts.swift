/// The ports of a phone that are probed, and the profiles that are tried on each.
///
/// Few profiles are tried on a port, so that a scan needs few connections.
package struct ProbePorts: Sendable {
    /// The ports of the configuration. Every profile is tried on them.
    private let configured: [UInt16]
    private let profiles: [Profile]

    package init(_ configured: [UInt16], profiles: [Profile] = []) {
        self.configured = configured
        self.profiles = profiles
    }

    /// The configured ports and the ports of all profiles. An empty configuration disables the probes.
    package var all: Set<UInt16> {
        configured.isEmpty ? [] : profiles.reduce(into: Set(configured)) { $0.formUnion($1.ports) }
    }

    /// Returns the profiles to try on a port, those with this port first.
    func profiles(on port: UInt16) -> [Profile] {
        let own = profiles.filter { $0.ports.contains(port) }
        return configured.contains(port) ? own + profiles.filter { !$0.ports.contains(port) } : own
    }
}
