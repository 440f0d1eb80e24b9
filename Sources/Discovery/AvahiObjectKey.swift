import Model

/// What an object of libavahi-client is for: the name by which the engine knows it.
enum AvahiObjectKey: Hashable, Sendable {
    case client
    /// The service browser of a type.
    case services(ServiceType)
    /// The record browser that sees what the service browser of the type drops (`InstanceName`).
    case pointers(ServiceType)
    case resolver(ServiceKey)
    /// The record browsers that resolve a split advert.
    case location(ServiceKey)
    case text(ServiceKey)
    /// The record browsers of a host's A and AAAA records.
    case addresses(HostKey, isIPv4: Bool)
    /// The entry group of an advertisement, by its id.
    case group(String)
    /// An empty entry group, for the question whether the daemon answers.
    case heartbeat
}
