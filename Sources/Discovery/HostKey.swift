/// A host on one link: what A and AAAA records are asked for.
struct HostKey: Hashable, Sendable {
    let interface: CInt
    /// In Avahi's escaped notation and lower case, because DNS names compare without case.
    let name: String

    init(interface: CInt, name: String) {
        self.interface = interface
        self.name = name.lowercased()
    }
}
