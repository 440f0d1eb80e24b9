import FoundationEssentials

/// What this process holds of the machine.
struct Footprint {
    let descriptors: Int
    let threads: Int
    let kilobytes: Int

    static func now() -> Footprint {
        func count(_ folder: String) -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
        }
        let status = (try? Data(contentsOf: URL(filePath: "/proc/self/status"))) ?? Data()
        let resident = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return Footprint(
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            kilobytes: resident.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        )
    }
}
