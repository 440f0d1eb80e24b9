/// Checks Avahi's limits against the number of services that the broker uses. Avahi drops the rest without a message.
struct AvahiLimitCheck {
    /// The Bonjour services that the broker lists.
    let services: Int
    /// The services that the broker advertises, each with an entry group of its own.
    let advertisements: Int
    /// The service types that the broker browses.
    let types: Int
    var configuration = AvahiConfiguration()

    /// A limit of the section `[server]`.
    private struct Limit {
        let key: String
        /// The default of avahi-daemon 0.8 (avahi-daemon/main.c).
        let standard: Int
        let needed: Int
        let consequence: String
    }

    /// Records of one service: PTR, SRV, TXT, A and AAAA. Measured, 4,096 records hold about 800 services.
    private static let recordsPerService = 5
    /// The lookups that the broker runs at once, beside its browsers and entry groups.
    private static let lookups = 64

    private var limits: [Limit] {
        [
            Limit(
                key: "cache-entries-max",
                standard: 4_096,
                needed: services * Self.recordsPerService,
                consequence: "apps on the network disappear"
            ),
            Limit(
                key: "objects-per-client-max",
                standard: 1_024,
                needed: types + advertisements + Self.lookups,
                consequence: "the broker cannot browse or advertise all services"
            ),
            Limit(
                key: "entries-per-entry-group-max",
                standard: 32,
                needed: 1,
                consequence: "the broker cannot advertise"
            ),
        ]
    }

    func run() -> [Check] {
        let findings = limits.compactMap { limit -> Check? in
            let value = configuration.number(of: limit.key, in: "server") ?? limit.standard
            guard value < limit.needed else { return nil }
            // Room for as many again, so that the next service is no finding.
            let wanted = max(limit.needed * 2, limit.standard)
            return .warn(
                "limits",
                "Avahi's \(limit.key) is \(value), but \(limit.needed) are needed; \(limit.consequence)",
                try: configuration.command(setting: limit.key, to: "\(wanted)", in: "server")
            )
        }
        guard findings.isEmpty else { return findings }
        let detail =
            "Avahi's limits suffice for \(Formatting.count(services, "service")) and "
            + Formatting.count(advertisements, "advertisement")
        return [Check.ok("limits", detail)]
    }
}
