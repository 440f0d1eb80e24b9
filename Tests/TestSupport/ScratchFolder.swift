import FoundationEssentials
import Glibc
import Synchronization

/// The private folder of one test, and the end of everything the test started in it.
///
/// The path is short, because a unix socket's path may not exceed 107 bytes (unix(7)).
package final class ScratchFolder: Sendable {
    package typealias Cleanup = @Sendable () async -> Void

    package let path: String
    private let cleanups = Mutex<[Cleanup]>([])

    fileprivate init() throws {
        _ = Self.swept
        var template = Array("/tmp/rig-\(getpid())-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw RigError(call: "mkdtemp") }
        path = template.withUnsafeBufferPointer { String(decoding: $0.dropLast().map(UInt8.init), as: UTF8.self) }
    }

    /// The path of something inside.
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

    /// Runs this when the test is over, pass or fail; last in, first out.
    package func atEnd(_ cleanup: @escaping Cleanup) { cleanups.withLock { $0.append(cleanup) } }

    /// Done once: removes what test processes left behind that were killed themselves.
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

/// Gives the body a folder and the right to start programs, and leaves nothing of either behind.
///
/// Not to be nested: only so many tests may be inside at a time, see `Turnstile`.
nonisolated(nonsending) package func withScratchFolder<Value>(
    _ body: (ScratchFolder) async throws -> Value
) async throws -> Value {
    await Turnstile.shared.enter()
    let result: Result<Value, any Error>
    do {
        let scratch = try ScratchFolder()
        do { result = .success(try await body(scratch)) } catch { result = .failure(error) }
        await scratch.close()
    } catch {
        result = .failure(error)
    }
    await Turnstile.shared.leave()
    return try result.get()
}
