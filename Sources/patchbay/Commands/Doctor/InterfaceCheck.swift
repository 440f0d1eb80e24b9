import Glibc
import Model

/// Checks each network interface for multicast DNS: its flag, and Avahi's membership in the group 224.0.0.251.
struct InterfaceCheck {
    struct Interface: Hashable {
        let name: String
        var isUp = true
        var isLoopback = false
        /// True for tunnels such as WireGuard's. Avahi does not use them by default.
        var isPointToPoint = false
        var hasMulticast = true
        /// True if the interface has an IPv4 address.
        var hasAddress = true
        /// True if a program of this machine is a member of the group on this interface.
        var isMember = true
    }

    /// True if avahi-daemon runs.
    let isAvahiRunning: Bool
    var configuration = AvahiConfiguration()
    var readInterfaces: () -> [Interface] = Self.interfaces

    func run() -> [Check] {
        let networks = readInterfaces().filter { !$0.isLoopback && !$0.isPointToPoint }
        let up = networks.filter { $0.isUp && $0.hasAddress }
        guard !up.isEmpty else {
            return [
                Check.ok("interface", "no network is connected; only apps on the cable and on this machine are found")
            ]
        }
        return up.map { interface in
            let name = SanitizedText(interface.name).text
            guard interface.hasMulticast else {
                return .warn(
                    "interface",
                    "\(name) is up without multicast; apps on that network are not found",
                    try: "sudo ip link set dev \(name.shellQuoted) multicast on"
                )
            }
            guard isAvahiRunning, !interface.isMember else {
                return .ok(
                    "interface",
                    isAvahiRunning ? "\(name) has multicast, and Avahi uses it" : "\(name) has multicast"
                )
            }
            if let key = denial(of: interface.name) {
                return .ok("interface", "\(name) has multicast; \(key) of \(configuration.path) excludes it")
            }
            return .warn(
                "interface",
                "Avahi does not use \(name); apps on that network are not found",
                try: "sudo systemctl restart avahi-daemon"
            )
        }
    }

    /// Returns the key of Avahi's configuration that excludes an interface; nil if there is none.
    private func denial(of name: String) -> String? {
        func names(_ key: String) -> [Substring]? {
            configuration.value(of: key, in: "server")?.split(separator: ",")
        }
        if names("deny-interfaces")?.contains(name[...]) == true { return "deny-interfaces" }
        if let allowed = names("allow-interfaces"), !allowed.contains(name[...]) { return "allow-interfaces" }
        return nil
    }

    /// Reads the interfaces of this machine (getifaddrs(3)).
    static func interfaces() -> [Interface] {
        let members = members(in: KernelSockets.text(of: "/proc/net/igmp") ?? "")
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var interfaces: [Interface] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            let name = String(cString: entry.ifa_name)
            let hasAddress = entry.ifa_addr?.pointee.sa_family == sa_family_t(AF_INET)
            if let index = interfaces.firstIndex(where: { $0.name == name }) {
                if hasAddress { interfaces[index].hasAddress = true }
                continue
            }
            let flags = Int(entry.ifa_flags)
            interfaces.append(
                Interface(
                    name: name,
                    isUp: flags & IFF_UP != 0 && flags & IFF_RUNNING != 0,
                    isLoopback: flags & IFF_LOOPBACK != 0,
                    isPointToPoint: flags & IFF_POINTOPOINT != 0,
                    hasMulticast: flags & IFF_MULTICAST != 0,
                    hasAddress: hasAddress,
                    isMember: members.contains(name)
                )
            )
        }
        return interfaces
    }

    /// Parses /proc/net/igmp (proc(5)) for the interfaces with a member of the group of multicast DNS.
    ///
    /// A line with the interface is followed by one indented line for each group, in the byte order of the machine.
    static func members(in table: String) -> Set<String> {
        var interface = ""
        var members: Set<String> = []
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(whereSeparator: \.isWhitespace)
            if line.first?.isWhitespace == false {
                interface = fields.count > 1 ? String(fields[1]) : ""
            } else if fields.first == "FB0000E0" {
                members.insert(interface)
            }
        }
        return members
    }
}
