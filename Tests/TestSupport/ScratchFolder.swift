import FoundationEssentials
import Glibc
import Synchronization

/// The private folder of one test. At its end everything that the test started is stopped.
///
/// The path is short, because a unix socket's path may not exceed 107 bytes (unix(7)).
package final class ScratchFolder: Sendable {
    package typealias Cleanup = @Sendable () async -> Void

    package let path: String
    private let cleanups = Mutex<[Cleanup]>([])

    fileprivate init() throws {
        _ = Self.swept
        var template = Array("/tmp/rig-\(getpid())-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestSupportError(call: "mkdtemp") }
        path = template.withUnsafeBufferPointer { String(decoding: $0.dropLast().map(UInt8.init), as: UTF8.self) }
    }

    /// Returns the path of a file in the folder.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(filePath: file(name)))
        return file(name)
    }

    @discardableResult
    package func makeFolder(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
        return file(name)
    }

    /// Registers a cleanup for the end of the test. Cleanups run in reverse order.
    package func atEnd(_ cleanup: @escaping Cleanup) { cleanups.withLock { $0.append(cleanup) } }

    /// Removes the folders of killed test processes, once per process.
    private static let swept: Void = {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/tmp")) ?? [] {
            let parts = name.split(separator: "-")
            guard parts.count == 3, parts[0] == "rig", let owner = pid_t(parts[1]), kill(owner, 0) != 0, errno == ESRCH
            else { continue }
            try? FileManager.default.removeItem(atPath: "/tmp/\(name)")
        }
    }()

    fileprivate func close() async {
        while let cleanup = cleanups.withLock({ $0.popLast() }) { await cleanup() }
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// Runs the body with a scratch folder and the permission to start programs, and removes both afterwards.
///
/// Suites use the trait `.scratchFolder` instead. Calls must not be nested: `StartLimiter` limits the number of
/// concurrent tests.
nonisolated(nonsending) package func withScratchFolder<Value>(
    _ body: (ScratchFolder) async throws -> Value
) async throws -> Value {
    await StartLimiter.shared.enter()
    let result: Result<Value, any Error>
    do {
        let scratch = try ScratchFolder()
        do { result = .success(try await body(scratch)) } catch { result = .failure(error) }
        await scratch.close()
    } catch { result = .failure(error) }
    await StartLimiter.shared.leave()
    return try result.get()
}
