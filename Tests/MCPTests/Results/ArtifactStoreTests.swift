import FoundationEssentials
import Glibc
import Logging
import Rig
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

            for (path, mode) in [("artifacts", 0o700), ("artifacts/\(link.sha)", 0o600)] {
                var facts = stat()
                #expect(stat("\(scratch.path)/\(path)", &facts) == 0)
                #expect(facts.st_mode & 0o777 == mode_t(mode))
            }
        }
    }

    @Test func `what made room and what an earlier broker left is off the disk`() async throws {
        try await withScratchFolder { scratch in
            let old = try await Samples.store(in: scratch).keep([9], mimeType: "image/png", for: Samples.owner)
            let store = ArtifactStore(in: "\(scratch.path)/artifacts", places: 1, logger: Logger(label: "test"))

            let first = try await store.keep([1], mimeType: "image/png", for: Samples.owner)
            let second = try await store.keep([2], mimeType: "image/png", for: Samples.owner)

            #expect(await store.artifact(old.sha, for: Samples.owner) == nil)
            #expect(await store.artifact(first.sha, for: Samples.owner) == nil)
            #expect(await store.artifact(second.sha, for: Samples.owner) != nil)
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/artifacts") == [second.sha])
        }
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
