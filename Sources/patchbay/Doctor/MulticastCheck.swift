import FoundationEssentials
import Model

/// Which programs answer multicast DNS on this machine: two of them fight over names and queries.
struct MulticastCheck {
    var tables = ["/proc/net/udp", "/proc/net/udp6"]
    private static let port = 5353

    func run() -> [Check] {
        let inodes = tables.flatMap { Self.inodes(port: Self.port, in: Self.text(of: $0) ?? "") }
        if inodes.isEmpty {
            return [check(.warn, "no program answers multicast DNS (UDP \(Self.port))", "systemctl start avahi-daemon")]
        }
        let programs = Set(Self.owners(of: Set(inodes.map { "socket:[\($0)]" }))).sorted()
        switch programs.count {
        case 0: return [check(.ok, "\(Formatting.count(inodes.count, "socket")) of other users on UDP \(Self.port)")]
        case 1: return [check(.ok, "\(programs[0]) alone answers multicast DNS")]
        default:
            let names = programs.joined(separator: ", ")
            return [
                check(
                    .warn,
                    "several programs share UDP \(Self.port): \(names)",
                    "stop all but avahi-daemon; for systemd-resolved set MulticastDNS=no"
                )
            ]
        }
    }

    /// The inodes of the sockets on a local port, from /proc/net/udp (proc(5)): `sl local_address … uid timeout inode`.
    static func inodes(port: Int, in table: String) -> [UInt64] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, let address = fields[1].split(separator: ":").last else { return nil }
            return Int(address, radix: 16) == port ? UInt64(fields[9]) : nil
        }
    }

    /// The names of the processes that hold these sockets, as far as we may look into them.
    private static func owners(of links: Set<String>) -> [String] {
        let files = FileManager.default
        let processes = (try? files.contentsOfDirectory(atPath: "/proc"))?.filter { Int($0) != nil } ?? []
        return processes.compactMap { process in
            let folder = "/proc/\(process)/fd"
            let descriptors = (try? files.contentsOfDirectory(atPath: folder)) ?? []
            let holds = descriptors.contains { descriptor in
                (try? files.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")).map(links.contains) ?? false
            }
            guard holds, let name = text(of: "/proc/\(process)/comm") else { return nil }
            return SanitizedText(name.filter { !$0.isNewline }).text
        }
    }

    private static func text(of path: String) -> String? {
        try? String(contentsOf: URL(filePath: path), encoding: .utf8)
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, _ remedy: String? = nil) -> Check {
        Check(name: "mdns", verdict: verdict, detail: detail, remedy: remedy)
    }
}
