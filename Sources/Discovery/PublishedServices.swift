import Model

/// What we ourselves advertise, and under which host name: it is never listed as somebody else's.
///
/// Avahi marks what a client published when a browser first sees it. That mark is missing where somebody else had the
/// name before: Avahi then sees one and the same record go on.
struct PublishedServices: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        let name: [UInt8]
        let type: String
    }

    /// Under their final names.
    var services: Set<Service> = []
    /// `this-machine.local`, in lower case.
    var host: String?

    func contains(_ key: ServiceKey, at details: ResolvedService) -> Bool {
        details.host.lowercased() == host && names(key)
    }

    func names(_ key: ServiceKey) -> Bool {
        services.contains(Service(name: key.name, type: key.type.lowercased()))
    }
}
