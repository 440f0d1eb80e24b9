import FoundationEssentials
import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite(.scratchFolder) struct ArtifactStoreTests {
    private let scratch = ScratchFolder.current

    @Test func `an artifact is readable by its holder under the hash of its content`() async throws {
        let store = ArtifactFixture.store(in: scratch)

        let link = try await store.save(Array("abc".utf8), mimeType: "text/plain", for: ArtifactFixture.agent("a"))

        #expect(link.uri == "patchbay://artifact/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let kept = Artifact(bytes: Array("abc".utf8), mimeType: "text/plain")
        #expect(await store.artifact(link.sha, for: ArtifactFixture.agent("a")) == kept)
        #expect(await store.artifact(link.sha, for: ArtifactFixture.owner) == kept)
        #expect(await store.artifact(link.sha, for: ArtifactFixture.agent("b")) == nil)
        #expect(await store.artifact("../\(link.sha)", for: ArtifactFixture.owner) == nil)
    }

    @Test func `files and directory of the store are private`() async throws {
        let link = try await ArtifactFixture.store(in: scratch)
            .save([1], mimeType: "image/png", for: ArtifactFixture.owner)

        let files = ["artifacts/\(link.sha)", "artifacts/\(link.sha).json"]
        for (path, mode) in [("artifacts", 0o700)] + files.map({ ($0, 0o600) }) {
            #expect(FileStatus(atPath: "\(scratch.path)/\(path)")?.mode == UInt32(mode))
        }
    }

    @Test func `a displaced artifact is deleted from the disk`() async throws {
        let store = ArtifactStore(in: "\(scratch.path)/artifacts", maxEntries: 1, logger: .quiet)

        let first = try await store.save([1], mimeType: "image/png", for: ArtifactFixture.owner)
        let second = try await store.save([2], mimeType: "image/png", for: ArtifactFixture.owner)

        #expect(await store.artifact(first.sha, for: ArtifactFixture.owner) == nil)
        #expect(await store.artifact(second.sha, for: ArtifactFixture.owner) != nil)
        #expect(try Self.names(in: scratch) == [second.sha, "\(second.sha).json"])
    }

    @Test func `an artifact survives a restart with its holders`() async throws {
        let before = ArtifactFixture.store(in: scratch)
        let link = try await before.save([1], mimeType: "image/png", for: ArtifactFixture.agent("a"))
        _ = try await before.save([1], mimeType: "image/png", for: ArtifactFixture.agent("b"))

        let store = ArtifactFixture.store(in: scratch)

        let kept = Artifact(bytes: [1], mimeType: "image/png")
        for principal in [ArtifactFixture.agent("a"), ArtifactFixture.agent("b"), ArtifactFixture.owner] {
            #expect(await store.artifact(link.sha, for: principal) == kept)
        }
        #expect(await store.artifact(link.sha, for: ArtifactFixture.agent("c")) == nil)
    }

    @Test func `expired and damaged artifacts are deleted when the broker starts`() async throws {
        let before = ArtifactFixture.store(in: scratch)
        let old = try await before.save([1], mimeType: "image/png", for: ArtifactFixture.owner)
        let cut = try await before.save([2, 2], mimeType: "image/png", for: ArtifactFixture.owner)
        let bare = try await before.save([3], mimeType: "image/png", for: ArtifactFixture.owner)
        let good = try await before.save([4], mimeType: "image/png", for: ArtifactFixture.owner)
        let folder = "\(scratch.path)/artifacts"
        let metadata = ArtifactMetadata(
            ArtifactIndex.Entry(mimeType: "image/png", size: 1, holders: ["uid:0"], expires: .zero),
            expiresAt: Date() - 1
        )
        try JSONCoding.encoder().encode(metadata).write(to: URL(filePath: "\(folder)/\(old.sha).json"))
        #expect(truncate("\(folder)/\(cut.sha)", 1) == 0)
        #expect(unlink("\(folder)/\(bare.sha).json") == 0)

        let store = ArtifactFixture.store(in: scratch)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await store.run() }
            try await eventually("the old ones are gone") {
                try Self.names(in: scratch) == [good.sha, "\(good.sha).json"]
            }
            group.cancelAll()
        }
    }

    @Test func `a clock that was ahead does not extend the lifetime beyond 1 h`() {
        let entry = ArtifactIndex.Entry(mimeType: "image/png", size: 1, holders: [], expires: .zero)
        let now = Date()

        #expect(
            ArtifactMetadata(entry, expiresAt: now + 86_400).entry(at: .seconds(5), on: now)?.expires == .seconds(3_605)
        )
        #expect(ArtifactMetadata(entry, expiresAt: now).entry(at: .seconds(5), on: now) == nil)
    }

    @Test func `an artifact saved again after expiry belongs to the new holder only`() async throws {
        final class Time: Sendable { let now = Mutex(Duration.zero) }
        let time = Time()
        let store = ArtifactStore(
            in: "\(scratch.path)/artifacts",
            uptime: { time.now.withLock { $0 } },
            logger: .quiet
        )
        let link = try await store.save([1], mimeType: "image/png", for: ArtifactFixture.agent("a"))

        time.now.withLock { $0 = .seconds(3_601) }
        _ = try await store.save([1], mimeType: "image/png", for: ArtifactFixture.agent("b"))

        #expect(await store.artifact(link.sha, for: ArtifactFixture.agent("b")) != nil)
        #expect(await store.artifact(link.sha, for: ArtifactFixture.agent("a")) == nil)
    }

    private static func names(in scratch: ScratchFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/artifacts").sorted()
    }

    @Test func `an artifact expires after 1 h`() async throws {
        final class Time: Sendable { let now = Mutex(Duration.zero) }
        let time = Time()
        let store = ArtifactStore(
            in: "\(scratch.path)/artifacts",
            uptime: { time.now.withLock { $0 } },
            logger: .quiet
        )
        let link = try await store.save([1], mimeType: "image/png", for: ArtifactFixture.owner)

        time.now.withLock { $0 = .seconds(3_600) }

        #expect(await store.artifact(link.sha, for: ArtifactFixture.owner) == nil)
    }

    @Test func `a directory that cannot be created is an error with its path`() async throws {
        let store = ArtifactStore(in: "\(scratch.path)/no/such", logger: .quiet)
        let reason = ArtifactError.notSaved(path: "\(scratch.path)/no/such", reason: "No such file or directory")
        await #expect(throws: reason) { try await store.save([1], mimeType: "image/png", for: ArtifactFixture.owner) }
    }
}
