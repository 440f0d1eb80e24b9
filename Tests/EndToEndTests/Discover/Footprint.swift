import FoundationEssentials
import Glibc

/// The resources that a process holds.
struct Footprint {
    let descriptors: Int
    /// The descriptors that are ends of pipes.
    let pipes: Int
    var others: Int { descriptors - pipes }
    let threads: Int
    let kilobytes: Int
    /// The CPU time in ticks of 10 ms.
    let ticks: Int

    /// Returns the resources of the process with this ID; this process by default.
    static func now(of process: Int32 = getpid()) -> Footprint {
        let folder = "/proc/\(process)/fd"
        let links = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
        }
        let status = (try? Data(contentsOf: URL(filePath: "/proc/\(process)/status"))) ?? Data()
        let resident = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        // Fields 14 and 15 of proc_pid_stat(5).
        let stat = (try? Data(contentsOf: URL(filePath: "/proc/\(process)/stat"))) ?? Data()
        let fields = String(decoding: stat, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        return Footprint(
            descriptors: links.count,
            pipes: links.count { $0.hasPrefix("pipe:") },
            threads: (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task").count) ?? 0,
            kilobytes: resident.flatMap { Int($0.filter(\.isNumber)) } ?? 0,
            ticks: fields.dropFirst(11).prefix(2).reduce(0) { $0 + (Int($1) ?? 0) }
        )
    }
}
