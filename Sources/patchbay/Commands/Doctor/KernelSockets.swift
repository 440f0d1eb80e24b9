import FoundationEssentials
import Glibc
import Model

/// The sockets of this machine that use a local port, and the programs that have these sockets open (proc(5)).
struct KernelSockets {
    /// A table of the kernel, in /proc/net.
    enum Table: String {
        case tcp
        case udp
    }

    /// A program with an open socket.
    struct Owner: Hashable {
        let process: pid_t
        let name: String
    }

    /// The mount point of the proc file system.
    var proc = "/proc"

    /// `TCP_LISTEN` in the kernel's tcp_states.h.
    private static let listening = "0A"

    /// Returns the inodes of the sockets with this local port; of TCP, only those that listen.
    func inodes(port: UInt16, in table: Table) -> [UInt64] {
        ["\(table)", "\(table)6"].flatMap { name in
            Self.inodes(
                port: Int(port),
                state: table == .tcp ? Self.listening : nil,
                in: Self.text(of: "\(proc)/net/\(name)") ?? ""
            )
        }
    }

    /// Parses /proc/net/tcp or /proc/net/udp: `sl local_address rem_address st … uid timeout inode`.
    static func inodes(port: Int, state: String? = nil, in table: String) -> [UInt64] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, let address = fields[1].split(separator: ":").last,
                state == nil || fields[3] == state ?? ""
            else { return nil }
            return Int(address, radix: 16) == port ? UInt64(fields[9]) : nil
        }
    }

    /// Returns the programs with these sockets, in the order of their process IDs.
    ///
    /// The descriptors of other users' processes are readable for root only.
    func owners(of inodes: [UInt64]) -> [Owner] {
        guard !inodes.isEmpty else { return [] }
        let links = Set(inodes.map { "socket:[\($0)]" })
        let files = FileManager.default
        let processes = ((try? files.contentsOfDirectory(atPath: proc)) ?? []).compactMap { pid_t($0) }.sorted()
        return processes.compactMap { process in
            let folder = "\(proc)/\(process)/fd"
            let descriptors = (try? files.contentsOfDirectory(atPath: folder)) ?? []
            let holds = descriptors.contains { descriptor in
                (try? files.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")).map(links.contains) ?? false
            }
            return holds ? name(of: process).map { Owner(process: process, name: $0) } : nil
        }
    }

    /// Returns the processes with a name, as the kernel truncates it to 15 bytes.
    func processes(named name: String) -> [pid_t] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: proc)) ?? []
        return entries.compactMap { pid_t($0) }.sorted().filter { self.name(of: $0) == name }
    }

    private func name(of process: pid_t) -> String? {
        Self.text(of: "\(proc)/\(process)/comm").map { SanitizedText($0.filter { !$0.isNewline }).text }
    }

    /// Returns the content of a text file; nil if the file cannot be read.
    static func text(of path: String) -> String? {
        try? String(contentsOf: URL(filePath: path), encoding: .utf8)
    }
}
