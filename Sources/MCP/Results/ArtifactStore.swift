import Crypto
import FoundationEssentials
import Glibc
package import Logging
import Model
import ServiceLifecycle
import SystemIO

/// Keeps what is too heavy for an answer, to be fetched by its address `patchbay://artifact/SHA-256`.
///
/// Readable for whoever's call it came from and for owners, for an hour, in files of mode 0600 in a folder of its own. A note
/// beside each says whose it is and until when: a broker that is started again goes on from there. Reads and writes on the
/// files' own thread.
package actor ArtifactStore: ArtifactReader, Service {
    package static let scheme = "patchbay://artifact/"

    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    private let folder: String
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    private let logger: Logger
    private var shelf: ArtifactIndex
    private var isReady = false

    /// - Parameters:
    ///   - folder: Made when it is needed, for nobody else to look into.
    ///   - places: The most things.
    ///   - bytes: The most bytes of all of them.
    ///   - clock: When to look for what is too old.
    ///   - uptime: The time since any fixed moment.
    ///   - logger: Told when a file cannot be removed or read.
    package init(
        in folder: String,
        places: Int = 200,
        bytes: Int = 256 << 20,
        clock: any Clock<Duration> = ContinuousClock(),
        uptime: (@Sendable () -> Duration)? = nil,
        logger: Logger
    ) {
        self.folder = folder
        self.clock = clock
        let start = ContinuousClock.now
        self.uptime = uptime ?? { ContinuousClock.now - start }
        self.logger = logger
        shelf = ArtifactIndex(places: places, bytes: bytes)
    }

    /// Removes what is too old: what an earlier broker left at once, the rest every minute.
    package func run() async throws {
        restore()
        await cancelWhenGracefulShutdown {
            while (try? await self.clock.sleep(for: .seconds(60))) != nil { await self.sweep() }
        }
    }

    /// Keeps these bytes for whoever's call they came from.
    ///
    /// - Throws: `ArtifactError`.
    package func keep(
        _ bytes: [UInt8],
        mimeType: String,
        for caller: AgentCaller
    ) throws(ArtifactError) -> ArtifactLink {
        guard shelf.fits(bytes.count) else { throw .tooLarge(bytes.count) }
        try prepare()
        let sha = SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        if shelf.things[sha] == nil { try write(bytes, to: path(of: sha)) }
        delete(shelf.put(sha, mimeType: mimeType, size: bytes.count, for: caller.holder, at: uptime()))
        note(sha)
        return ArtifactLink(sha: sha, mimeType: mimeType, size: bytes.count)
    }

    package func artifact(_ sha: String, for caller: AgentCaller) -> Artifact? {
        restore()
        guard let thing = shelf.find(sha, for: caller.isOwner ? nil : caller.holder, at: uptime()) else { return nil }
        do throws(ArtifactError) {
            return Artifact(bytes: try read(path(of: sha)), mimeType: thing.mimeType)
        } catch {
            logger.warning("an artifact cannot be read any more", metadata: ["error": "\(error)"])
            shelf.remove(sha)
            return nil
        }
    }

    private func sweep() { delete(shelf.expire(at: uptime())) }

    private func delete(_ shas: [String]) {
        for path in shas.flatMap({ [note(of: $0), path(of: $0)] }) where unlink(path) != 0 && errno != ENOENT {
            logger.warning(
                "an artifact cannot be removed",
                metadata: ["file": "\(path)", "error": "\(SocketError.words(for: errno))"]
            )
        }
    }

    private func path(of sha: String) -> String { "\(folder)/\(sha)" }
    private func note(of sha: String) -> String { "\(path(of: sha)).json" }

    /// Without it the thing is there for this run alone.
    private func note(_ sha: String) {
        guard let thing = shelf.things[sha] else { return }
        let left = (thing.expires - uptime()).components.seconds
        do {
            let note = ArtifactMetadata(thing, expires: Date() + TimeInterval(left))
            try write(Array(try JSONCoding.encoder().encode(note)), to: self.note(of: sha))
        } catch {
            logger.warning("an artifact will not survive a restart", metadata: ["error": "\(error)"])
        }
    }

    private func prepare() throws(ArtifactError) {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw failure(folder) }
        restore()
    }

    /// Puts on the shelf what an earlier broker left and is still to be there. What has no note, or not all of its bytes, goes.
    private func restore() {
        if isReady { return }
        isReady = true
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let shas = Set(names.map { String($0.prefix(64)) })
        for sha in shas where sha.utf8.count == 64 && sha.allSatisfy(\.isHexDigit) {
            guard let note = try? JSONCoding.decoder().decode(ArtifactMetadata.self, from: Data(read(note(of: sha)))),
                size(of: path(of: sha)) == note.size, let thing = note.thing(at: uptime(), on: Date())
            else {
                delete([sha])
                continue
            }
            delete(shelf.put(sha, thing, at: uptime()))
        }
    }

    private func size(of path: String) -> Int? {
        var facts = stat()
        return stat(path, &facts) == 0 ? Int(facts.st_size) : nil
    }

    private func write(_ bytes: [UInt8], to path: String) throws(ArtifactError) {
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw failure(path) }
        let file = Descriptor(owning: number)
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let failure = failure(path)
                unlink(path)
                throw failure
            }
            done += count
        }
    }

    private func read(_ path: String) throws(ArtifactError) -> [UInt8] {
        do { return Array(try Data(contentsOf: URL(filePath: path))) } catch { throw failure(path) }
    }

    private func failure(_ path: String) -> ArtifactError {
        .notSaved(path: path, reason: SocketError.words(for: errno))
    }
}

/// Why something heavy could not be kept.
package enum ArtifactError: Error, Hashable, Sendable {
    case tooLarge(Int)
    case notSaved(path: String, reason: String)
}

extension ArtifactError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLarge(let count): "\(count) bytes are more than the broker keeps"
        case .notSaved(let path, let reason): "\(path) could not be written: \(reason); make room or correct its owner"
        }
    }
}

/// What is kept outside of an answer because it is too heavy for one.
package struct Artifact: Hashable, Sendable {
    package let bytes: [UInt8]
    package let mimeType: String

    package init(bytes: [UInt8], mimeType: String) {
        self.bytes = bytes
        self.mimeType = mimeType
    }
}

/// Where such things are fetched.
package protocol ArtifactReader: Sendable {
    /// Nil where there is none, or none for this caller.
    func artifact(_ sha: String, for caller: AgentCaller) async -> Artifact?
}
