import CLinux
import Glibc

/// The network interfaces of this machine at one moment: their names, and which addresses are on their links.
struct LocalInterfaces: Sendable {
    /// One address of ours and the bits of it that the whole link shares.
    struct Network: Sendable {
        let interface: CInt
        let address: [UInt8]
        let mask: [UInt8]
    }

    let names: [CInt: String]
    let networks: [Network]

    /// What getifaddrs(3) tells now; empty when it fails, which makes every address off-link, so that none is dialled.
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

    /// Whether a packet to the address goes out on that interface without a router between.
    func isOnLink(_ address: IPAddress, interface: CInt) -> Bool {
        networks.contains { network in
            network.interface == interface && network.address.count == address.bytes.count
                && zip(zip(network.address, address.bytes), network.mask).allSatisfy { ($0.0 ^ $0.1) & $1 == 0 }
        }
    }

    func isOwn(_ address: IPAddress) -> Bool { networks.contains { $0.address == address.bytes } }

    /// Lower is better: IPv4 before IPv6, routable before link-local. The first route is the one that is dialled first.
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
