import CLinux
import Glibc
import Model

/// The network interfaces of this machine at one moment: their names and the networks on their links.
struct LocalInterfaces: Sendable {
    /// An address of this machine and the netmask of its link.
    struct Network: Sendable {
        let interface: CInt
        let address: [UInt8]
        let mask: [UInt8]
    }

    let names: [CInt: String]
    let networks: [Network]

    /// Reads the interfaces with getifaddrs(3).
    ///
    /// Returns an empty value on failure. Then every address is off-link and no address is dialled.
    static func current() -> LocalInterfaces {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return LocalInterfaces(names: [:], networks: []) }
        defer { freeifaddrs(first) }
        var names: [CInt: String] = [:]
        var networks: [Network] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            let index = CInt(bitPattern: if_nametoindex(entry.ifa_name))
            guard index > 0 else { continue }
            names[index] = String(cString: entry.ifa_name)
            guard let address = bytes(of: entry.ifa_addr), let mask = bytes(of: entry.ifa_netmask) else { continue }
            networks.append(Network(interface: index, address: address, mask: mask))
        }
        return LocalInterfaces(names: names, networks: networks)
    }

    /// Returns true if a packet to the address leaves through this interface without passing a router.
    func isOnLink(_ address: IPAddress, interface: CInt) -> Bool {
        networks.contains { network in
            network.interface == interface && network.address.count == address.bytes.count
                && zip(zip(network.address, address.bytes), network.mask).allSatisfy { ($0.0 ^ $0.1) & $1 == 0 }
        }
    }

    func isOwn(_ address: IPAddress) -> Bool { networks.contains { $0.address == address.bytes } }

    /// The preference of an address; lower is better: IPv4 before IPv6, routable before link-local. The best route is
    /// dialled first.
    func rank(of address: IPAddress) -> Int {
        switch (address.isIPv4, address.isLinkLocal) {
        case (true, false): 0
        case (false, false): 1
        case (false, true): 2
        case (true, true): 3
        }
    }

    private static func bytes(of address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        switch CInt(address.pointee.sa_family) {
        case AF_INET:
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { pointer in
                withUnsafeBytes(of: pointer.pointee.sin_addr) { Array($0) }
            }
        case AF_INET6:
            return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
                withUnsafeBytes(of: pointer.pointee.sin6_addr) { Array($0) }
            }
        default: return nil
        }
    }
}

/// An IP address from an A or AAAA record.
struct IPAddress: Hashable, Sendable {
    /// 4 or 16 bytes in network order.
    let bytes: [UInt8]

    /// The loopback interface. The kernel requires index 1 for it in every network namespace (loopback_net_init).
    static let loopbackInterface: CInt = 1

    /// Returns nil unless the data has the size of an address.
    init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Parses numeric notation without a scope. Returns nil for other text.
    init?(numeric text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.bytes = Array(bytes.prefix(4))
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.bytes = bytes
        } else {
            return nil
        }
    }

    var isIPv4: Bool { bytes.count == 4 }

    /// True for `fe80::/10` and `169.254.0.0/16`.
    var isLinkLocal: Bool {
        isIPv4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }

    var isLoopback: Bool {
        isIPv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// Addresses at which cloud providers serve credentials to the machine itself.
    private static let metadata: Set<[UInt8]> = [
        [169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16],
        [0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
    ]

    /// The IPv4 address inside a NAT64 (RFC 6052; RFC 8215 for the local prefix) or 6to4 (RFC 3056) address.
    private var embedded: IPAddress? {
        guard !isIPv4 else { return nil }
        if bytes.starts(with: [0x20, 0x02]) { return IPAddress(bytes: Array(bytes[2..<6])) }
        guard bytes.starts(with: [0, 0x64, 0xFF, 0x9B]) else { return nil }
        if bytes[4..<12].allSatisfy({ $0 == 0 }) { return IPAddress(bytes: Array(bytes[12...])) }
        // A /48 prefix places the IPv4 octets around octet 8, which is zero.
        return bytes[4..<6] == [0, 1] ? IPAddress(bytes: [bytes[6], bytes[7], bytes[9], bytes[10]]) : nil
    }

    /// The reason why an advertisement must not make the broker dial this address; nil if the address is allowed.
    ///
    /// mDNS is unauthenticated: any machine on the link can announce any address. Only addresses of other machines on
    /// the same link are dialled. A loopback address is accepted only if the advertisement itself arrived over
    /// loopback.
    func refusal(from interface: CInt, _ local: LocalInterfaces) -> String? {
        if isLoopback, interface == Self.loopbackInterface { return nil }
        if let why = refusalOfSender(local) { return why }
        return local.isOnLink(self, interface: interface)
            ? nil : "\(self) is not on the network link that the advertisement came from"
    }

    /// The reason why this cannot be the address of another machine that sent a request; nil if it can be.
    func refusalOfSender(_ local: LocalInterfaces) -> String? {
        special(local) ?? embedded?.special(local).map { "\(self) stands for an IPv4 address, and \($0)" }
    }

    /// The reason why this can never be the address of another machine on any link; nil if it can be.
    private func special(_ local: LocalInterfaces) -> String? {
        if isLoopback { return "\(self) is the loopback address" }
        if Self.metadata.contains(bytes) { return "\(self) is a cloud provider's metadata address" }
        if local.isOwn(self) {
            return "\(self) is an address of this machine; add the app by hand: patchbay add NAME 127.0.0.1:PORT"
        }
        let isMany = isIPv4 ? bytes[0] == 0 || bytes[0] >= 224 : bytes[0] == 0xFF
        // `::`, IPv4-compatible and IPv4-mapped addresses would allow every IPv4 address rejected above.
        let isMapped = !isIPv4 && bytes[..<10].allSatisfy { $0 == 0 }
        return isMany || isMapped ? "\(self) is not the address of one machine" : nil
    }
}

extension IPAddress: CustomStringConvertible {
    /// Numeric notation without a scope, as inet_ntop(3) writes it.
    var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(isIPv4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The addresses of this machine for other machines on its networks.
package enum MachineAddresses {
    /// Returns the numeric addresses on the accepted interfaces: those of the default route first, and IPv4 before IPv6.
    /// Loopback and link-local addresses are left out.
    ///
    /// A firewall may still block them.
    package static func reachable(on interfaces: InterfaceFilter) -> [String] {
        let local = LocalInterfaces.current()
        let addresses = local.networks.compactMap { network -> IPAddress? in
            guard let name = local.names[network.interface], interfaces.accepts(name) else { return nil }
            return IPAddress(bytes: network.address)
        }
        let main = DefaultRoute.interface()
        let mainAddresses = Set(local.networks.filter { local.names[$0.interface] == main }.map(\.address))
        func rank(_ address: IPAddress) -> (Int, Int) {
            (mainAddresses.contains(address.bytes) ? 0 : 1, local.rank(of: address))
        }
        var seen: Set<IPAddress> = []
        return addresses.filter { !$0.isLoopback && !$0.isLinkLocal && seen.insert($0).inserted }
            .sorted { rank($0) < rank($1) }
            .map(\.description)
    }

    /// The reason why the broker must not dial the address from which a request came over the network; nil if it may.
    ///
    /// The connection proves the address, so it need not be on a link of this machine. Such an address may be behind a
    /// router or in a VPN.
    package static func refusal(ofSender address: String) -> String? {
        guard let parsed = IPAddress(numeric: address) else { return "\(SanitizedText(address)) is no numeric address" }
        return parsed.refusalOfSender(.current())
    }
}
