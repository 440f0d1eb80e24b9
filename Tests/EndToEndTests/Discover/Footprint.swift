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

    /// Returns the resources of the process with this ID; this process by default.
    static func now(of process: Int32 = getpid()) -> Footprint {
        let folder = "/proc/\(process)/fd"
        let links = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
        }
        let status = (try? Data(contentsOf: URL(filePath: "/proc/\(process)/status"))) ?? Data()
        let resident = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return Footprint(
            descriptors: links.count,
            pipes: links.count { $0.hasPrefix("pipe:") },
            threads: (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task").count) ?? 0,
            kilobytes: resident.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        )
    }
}
