import FoundationEssentials
import Glibc
import Logging
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

@Suite struct ArtifactStoreTests {
    @Test func `what is kept is read again by whose it is, under the hash of its content`() async throws {
        try await withScratchFolder { scratch in
            let store = Samples.store(in: scratch)

            let link = try await store.keep(Array("abc".utf8), mimeType: "text/plain", for: Samples.agent("a"))

            #expect(
                link.uri == "patchbay://artifact/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            )
            let kept = Artifact(bytes: Array("abc".utf8), mimeType: "text/plain")
            #expect(await store.artifact(link.sha, for: Samples.agent("a")) == kept)
            #expect(await store.artifact(link.sha, for: Samples.owner) == kept)
            #expect(await store.artifact(link.sha, for: Samples.agent("b")) == nil)
            #expect(await store.artifact("../\(link.sha)", for: Samples.owner) == nil)
        }
    }

    @Test func `its files are for nobody else`() async throws {
        try await withScratchFolder { scratch in
            let link = try await Samples.store(in: scratch)
                .keep([1], mimeType: "image/png", for: Samples.owner)

            let files = ["artifacts/\(link.sha)", "artifacts/\(link.sha).json"]
            for (path, mode) in [("artifacts", 0o700)] + files.map({ ($0, 0o600) }) {
                var facts = stat()
                #expect(stat("\(scratch.path)/\(path)", &facts) == 0)
                #expect(facts.st_mode & 0o777 == mode_t(mode))
            }
        }
    }

    @Test func `what made room is off the disk`() async throws {
        try await withScratchFolder { scratch in
            let store = ArtifactStore(in: "\(scratch.path)/artifacts", places: 1, logger: Logger(label: "test"))

            let first = try await store.keep([1], mimeType: "image/png", for: Samples.owner)
            let second = try await store.keep([2], mimeType: "image/png", for: Samples.owner)

            #expect(await store.artifact(first.sha, for: Samples.owner) == nil)
            #expect(await store.artifact(second.sha, for: Samples.owner) != nil)
            #expect(try Self.names(in: scratch) == [second.sha, "\(second.sha).json"])
        }
    }

    @Test func `an hour goes on after a restart, for the same holders`() async throws {
        try await withScratchFolder { scratch in
            let before = Samples.store(in: scratch)
            let link = try await before.keep([1], mimeType: "image/png", for: Samples.agent("a"))
            _ = try await before.keep([1], mimeType: "image/png", for: Samples.agent("b"))

            let store = Samples.store(in: scratch)

            let kept = Artifact(bytes: [1], mimeType: "image/png")
            for caller in [Samples.agent("a"), Samples.agent("b"), Samples.owner] {
                #expect(await store.artifact(link.sha, for: caller) == kept)
            }
            #expect(await store.artifact(link.sha, for: Samples.agent("c")) == nil)
        }
    }

    @Test func `what nobody can have any more is off the disk as soon as the broker runs`() async throws {
        try await withScratchFolder { scratch in
            let before = Samples.store(in: scratch)
            let old = try await before.keep([1], mimeType: "image/png", for: Samples.owner)
            let cut = try await before.keep([2, 2], mimeType: "image/png", for: Samples.owner)
            let bare = try await before.keep([3], mimeType: "image/png", for: Samples.owner)
            let good = try await before.keep([4], mimeType: "image/png", for: Samples.owner)
            let folder = "\(scratch.path)/artifacts"
            let note = ArtifactMetadata(
                ArtifactIndex.Thing(mimeType: "image/png", size: 1, holders: ["uid:0"], expires: .zero),
                expires: Date() - 1
            )
            try JSONCoding.encoder().encode(note).write(to: URL(filePath: "\(folder)/\(old.sha).json"))
            #expect(truncate("\(folder)/\(cut.sha)", 1) == 0)
            #expect(unlink("\(folder)/\(bare.sha).json") == 0)

            let store = Samples.store(in: scratch)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await store.run() }
                try await eventually("the old ones are gone") {
                    try Self.names(in: scratch) == [good.sha, "\(good.sha).json"]
                }
                group.cancelAll()
            }
        }
    }

    @Test func `a clock that was ahead makes nothing live longer than an hour`() {
        let thing = ArtifactIndex.Thing(mimeType: "image/png", size: 1, holders: [], expires: .zero)
        let now = Date()

        #expect(
            ArtifactMetadata(thing, expires: now + 86_400).thing(at: .seconds(5), on: now)?.expires == .seconds(3_605)
        )
        #expect(ArtifactMetadata(thing, expires: now).thing(at: .seconds(5), on: now) == nil)
    }

    @Test func `what is kept again when its hour is just over is there for another`() async throws {
        try await withScratchFolder { scratch in
            final class Time: Sendable { let now = Mutex(Duration.zero) }
            let time = Time()
            let store = ArtifactStore(
                in: "\(scratch.path)/artifacts",
                uptime: { time.now.withLock { $0 } },
                logger: Logger(label: "test")
            )
            let link = try await store.keep([1], mimeType: "image/png", for: Samples.agent("a"))

            time.now.withLock { $0 = .seconds(3_601) }
            _ = try await store.keep([1], mimeType: "image/png", for: Samples.agent("b"))

            #expect(await store.artifact(link.sha, for: Samples.agent("b")) != nil)
            #expect(await store.artifact(link.sha, for: Samples.agent("a")) == nil)
        }
    }

    private static func names(in scratch: ScratchFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/artifacts").sorted()
    }

    @Test func `after its hour nobody gets it`() async throws {
        try await withScratchFolder { scratch in
            final class Time: Sendable { let now = Mutex(Duration.zero) }
            let time = Time()
            let store = ArtifactStore(
                in: "\(scratch.path)/artifacts",
                uptime: { time.now.withLock { $0 } },
                logger: Logger(label: "test")
            )
            let link = try await store.keep([1], mimeType: "image/png", for: Samples.owner)

            time.now.withLock { $0 = .seconds(3_600) }

            #expect(await store.artifact(link.sha, for: Samples.owner) == nil)
        }
    }

    @Test func `a folder that cannot be made is an error that says which`() async throws {
        try await withScratchFolder { scratch in
            let store = ArtifactStore(in: "\(scratch.path)/no/such", logger: Logger(label: "test"))
            let reason = ArtifactError.notSaved(path: "\(scratch.path)/no/such", reason: "No such file or directory")
            await #expect(throws: reason) { try await store.keep([1], mimeType: "image/png", for: Samples.owner) }
        }
    }
}
