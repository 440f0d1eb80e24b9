import FoundationEssentials
import Glibc

/// Resource usage of a process and all its descendants, read from proc(5).
struct ProcessFigures: Hashable, Sendable {
    static let none = ProcessFigures(processes: [], memory: 0, threads: 0, descriptors: 0)

    let processes: [Int32]
    /// The resident memory in bytes; shared pages count once per process.
    let memory: Int
    let threads: Int
    let descriptors: Int

    private init(processes: [Int32], memory: Int, threads: Int, descriptors: Int) {
        self.processes = processes
        self.memory = memory
        self.threads = threads
        self.descriptors = descriptors
    }

    /// Reads the figures; all are zero if the process does not exist.
    init(ofTreeAt process: Int32) {
        let folder = "/proc/\(process)"
        let tasks = Self.names(in: "\(folder)/task")
        let own = ProcessFigures(
            processes: [process],
            memory: Self.words(in: "\(folder)/statm").dropFirst().first.flatMap { Int($0) }.map { $0 * Self.page } ?? 0,
            threads: tasks.count,
            descriptors: Self.names(in: "\(folder)/fd").count
        )
        let children = tasks.flatMap { Self.words(in: "\(folder)/task/\($0)/children") }.compactMap { Int32($0) }
        self = children.map(ProcessFigures.init(ofTreeAt:)).reduce(own, +)
    }

    static func + (left: ProcessFigures, right: ProcessFigures) -> ProcessFigures {
        ProcessFigures(
            processes: left.processes + right.processes,
            memory: left.memory + right.memory,
            threads: left.threads + right.threads,
            descriptors: left.descriptors + right.descriptors
        )
    }

    private static let page = Int(sysconf(CInt(_SC_PAGESIZE)))

    private static func names(in folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private static func words(in file: String) -> [Substring] {
        (try? String(contentsOfFile: file, encoding: .utf8))?.split { $0.isWhitespace } ?? []
    }
}
