package import Model

/// What Bonjour is asked for, as the configuration says it.
package struct DiscoveryOptions: Sendable {
    /// Which service types are browsed.
    package var types: [ServiceType]
    /// On which network interfaces services count.
    package var interfaces: InterfaceFilter

    /// - Parameters:
    ///   - types: Each costs two browsers of the 1,024 objects that avahi-daemon grants a client.
    ///   - allowed: Globs on interface names (`eth*`); empty allows every interface.
    ///   - denied: Globs that win over `allowed`. Container bridges carry the containers' adverts, whose addresses lead
    ///     nowhere from elsewhere.
    package init(
        types: [ServiceType] = ServiceType.standard,
        allowed: [String] = [],
        denied: [String] = ["docker*", "veth*"]
    ) {
        self.types = types
        interfaces = InterfaceFilter(allowed: allowed, denied: denied)
    }
}
