import FoundationEssentials
import Glibc
import TestSupport

/// The machine on which the figures were measured.
struct Machine: Codable, Sendable {
    let processor: String
    let cores: Int
    let memory: Int
    let kernel: String
    /// The load average of the last minute before the run; other programs influence all figures.
    let load: Double
    let versions: [String: String]

    static func here(in scratch: ScratchFolder) async -> Machine {
        let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model = information.split(separator: "\n").first { $0.hasPrefix("model name") }
        var versions: [String: String] = [:]
        for (name, arguments) in [(TestBed.iproxy, ["--version"]), ("usbmuxd", ["--version"]), ("socat", ["-V"])] {
            let key = name.split(separator: "/").last.map(String.init) ?? name
            versions[key] = await version(name, arguments, in: scratch)
        }
        versions["patchbay"] = await version((try? Executable.built("patchbay")) ?? "", ["--version"], in: scratch)
        return Machine(
            processor: model?.split(separator: ":").last.map { $0.drop { $0 == " " } }.map(String.init) ?? "unknown",
            cores: ProcessInfo.processInfo.activeProcessorCount,
            memory: Int(ProcessInfo.processInfo.physicalMemory),
            kernel: text("/proc/sys/kernel/osrelease"),
            load: text("/proc/loadavg").split(separator: " ").first.flatMap { Double($0) } ?? 0,
            versions: versions
        )
    }

    /// The line below the table.
    var summary: String {
        let programs = versions.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let machine = "\(cores) x \(processor), \(memory >> 30) GiB, Linux \(kernel)"
        return "\(machine), load \(load.shown) at the start; \(programs)"
    }

    /// Returns the first word that looks like a version.
    private static func version(_ program: String, _ arguments: [String], in scratch: ScratchFolder) async -> String {
        let lines = (try? await Program.run(program, arguments, in: scratch)) ?? []
        let words = lines.flatMap { $0.split(separator: " ") }
        return words.first { $0.first?.isNumber == true && $0.contains(".") }.map(String.init) ?? "unknown"
    }

    private static func text(_ file: String) -> String {
        (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n").first.map(String.init) ?? ""
    }
}
