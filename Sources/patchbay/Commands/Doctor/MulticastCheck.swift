import Model

/// Checks which programs use multicast DNS on this machine. Two mDNS responders conflict about names and queries.
struct MulticastCheck {
    /// Returns the programs with a socket on UDP port 5353, or nil if there is no such socket.
    var readOwners: () -> [KernelSockets.Owner]? = {
        let sockets = KernelSockets()
        let inodes = sockets.inodes(port: Self.port, in: .udp)
        return inodes.isEmpty ? nil : sockets.owners(of: inodes)
    }

    private static let port: UInt16 = 5353
    /// Programs that only ask, with the port shared (SO_REUSEPORT), by the kernel's names of them.
    private static let clients: Set = ["chrome", "chromium", "firefox", "patchbayd", "spotify", "vlc"]

    func run() -> [Check] {
        guard let owners = readOwners() else {
            return [
                Check.warn(
                    "mdns",
                    "no mDNS responder is running (UDP \(Self.port))",
                    try: "sudo systemctl start avahi-daemon"
                )
            ]
        }
        let responders = owners.filter { !Self.clients.contains($0.name) }
        let others = responders.filter { $0.name != "avahi-daemon" }
        guard !others.isEmpty else {
            let detail =
                responders.isEmpty
                ? "programs of other users, which only root can see, use UDP \(Self.port)"
                : "avahi-daemon is the only mDNS responder"
            return [Check.ok("mdns", detail)]
        }
        return others.map { other in
            Check.warn(
                "mdns",
                "\(other.name) (process \(other.process)) uses UDP \(Self.port) too, and may take Avahi's answers",
                try: Self.command(against: other)
            )
        }
    }

    /// Returns the command or the setting that turns a responder off.
    static func command(against owner: KernelSockets.Owner) -> String {
        switch owner.name {
        case "systemd-resolve":
            // A drop-in of resolved.conf(5) survives updates of the package.
            """
            sudo sh -c 'mkdir -p /etc/systemd/resolved.conf.d && printf "[Resolve]\\nMulticastDNS=no\\n" \
            >/etc/systemd/resolved.conf.d/patchbay.conf && systemctl restart systemd-resolved'
            """
        case "mdnsd", "mDNSResponder": "sudo systemctl disable --now \(owner.name)"
        default: "turn off multicast DNS in the settings of \(owner.name)"
        }
    }
}
