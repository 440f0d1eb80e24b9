package import AccessControl
import Crypto
import FoundationEssentials
import Glibc
package import Logging
import Model
import ServiceLifecycle
import SystemIO

/// Stores content that is too large for a result, readable at `patchbay://artifact/SHA-256`.
///
/// An artifact is readable for 1 h by the holders of the calls that returned it and by owners. Artifacts are files of
/// mode 0600 in a directory of their own. A metadata file beside each lets a restarted broker restore it. Files are
/// read and written on the thread for file I/O.
package actor ArtifactStore: ArtifactReader, Service {
    package static let scheme = "patchbay://artifact/"

    package nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }

    private let folder: String
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    private let logger: Logger
    private var index: ArtifactIndex
    private var isRestored = false

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - folder: Created on first use with mode 0700.
    ///   - maxEntries: The maximum number of artifacts.
    ///   - maxBytes: The maximum size of all artifacts together.
    ///   - clock: Times the removal of expired artifacts.
    ///   - uptime: The time since a fixed moment.
    ///   - logger: Gets a warning if a file cannot be removed or read.
    package init(
        in folder: String,
        maxEntries: Int = 200,
        maxBytes: Int = 256 << 20,
        clock: any Clock<Duration> = ContinuousClock(),
        uptime: (@Sendable () -> Duration)? = nil,
        logger: Logger
    ) {
        self.folder = folder
        self.clock = clock
        let start = ContinuousClock.now
        self.uptime = uptime ?? { ContinuousClock.now - start }
        self.logger = logger
        index = ArtifactIndex(maxEntries: maxEntries, maxBytes: maxBytes)
    }

    /// Removes expired artifacts: those of an earlier run at once, others every minute.
    package func run() async throws {
        restore()
        await cancelWhenGracefulShutdown {
            while (try? await self.clock.sleep(for: .seconds(60))) != nil { await self.removeExpired() }
        }
    }

    /// Stores an artifact for the principal.
    ///
    /// - Throws: `ArtifactError`.
    package func save(
        _ bytes: [UInt8],
        mimeType: String,
        for principal: Principal
    ) throws(ArtifactError) -> ArtifactLink {
        guard index.fits(bytes.count) else { throw .tooLarge(bytes.count) }
        try prepare()
        let sha = Artifact.sha(of: bytes)
        if index.entries[sha] == nil { try write(bytes, to: path(of: sha)) }
        delete(index.put(sha, mimeType: mimeType, size: bytes.count, for: principal.holder, at: uptime()))
        writeMetadata(of: sha)
        return ArtifactLink(sha: sha, mimeType: mimeType, size: bytes.count)
    }

    /// Returns an artifact that the principal may read. An unreadable file is removed from the index.
    package func artifact(_ sha: String, for principal: Principal) -> Artifact? {
        restore()
        guard let entry = index.find(sha, for: principal.isOwner ? nil : principal.holder, at: uptime()) else {
            return nil
        }
        do throws(ArtifactError) {
            return Artifact(bytes: try read(path(of: sha)), mimeType: entry.mimeType)
        } catch {
            logger.warning("cannot read an artifact; it is removed from the index", metadata: ["error": "\(error)"])
            index.remove(sha)
            return nil
        }
    }

    private func removeExpired() { delete(index.expire(at: uptime())) }

    private func delete(_ shas: [String]) {
        for path in shas.flatMap({ [metadataPath(of: $0), path(of: $0)] }) where unlink(path) != 0 && errno != ENOENT {
            logger.warning(
                "cannot remove a file of an artifact",
                metadata: ["file": "\(path)", "error": "\(SocketError.message(for: errno))"]
            )
        }
    }

    private func path(of sha: String) -> String { "\(folder)/\(sha)" }
    private func metadataPath(of sha: String) -> String { "\(path(of: sha)).json" }

    /// Without the metadata file, the artifact is lost at the next restart.
    private func writeMetadata(of sha: String) {
        guard let entry = index.entries[sha] else { return }
        let left = (entry.expires - uptime()).components.seconds
        do {
            let metadata = ArtifactMetadata(entry, expiresAt: Date() + TimeInterval(left))
            try write(Array(try JSONCoding.encoder().encode(metadata)), to: metadataPath(of: sha))
        } catch {
            logger.warning(
                "cannot write the metadata of an artifact; the artifact is lost at the next restart",
                metadata: ["error": "\(error)"]
            )
        }
    }

    private func prepare() throws(ArtifactError) {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw failure(folder) }
        restore()
    }

    /// Restores the artifacts of an earlier run. Expired ones and those without metadata or with missing bytes are
    /// deleted.
    private func restore() {
        if isRestored { return }
        isRestored = true
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let shas = Set(names.map { String($0.prefix(64)) })
        for sha in shas where sha.utf8.count == 64 && sha.allSatisfy(\.isHexDigit) {
            guard
                let metadata = try? JSONCoding.decoder().decode(
                    ArtifactMetadata.self,
                    from: Data(read(metadataPath(of: sha)))
                ),
                FileStatus(atPath: path(of: sha))?.size == metadata.size,
                let entry = metadata.entry(at: uptime(), on: Date())
            else {
                delete([sha])
                continue
            }
            delete(index.put(sha, entry, at: uptime()))
        }
    }

    private func write(_ bytes: [UInt8], to path: String) throws(ArtifactError) {
        unlink(path)
        do {
            try Descriptor(creating: path).write(bytes, to: path)
        } catch {
            unlink(path)
            throw .notSaved(path: path, reason: error.reason)
        }
    }

    private func read(_ path: String) throws(ArtifactError) -> [UInt8] {
        do { return Array(try Data(contentsOf: URL(filePath: path))) } catch { throw failure(path) }
    }

    private func failure(_ path: String) -> ArtifactError {
        .notSaved(path: path, reason: SocketError.message(for: errno))
    }
}

/// The reason why an artifact could not be stored.
package enum ArtifactError: Error, Hashable, Sendable {
    case tooLarge(Int)
    case notSaved(path: String, reason: String)
}

extension ArtifactError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLarge(let count): "\(count) bytes exceed the limit of the artifact store"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); free disk space or correct the owner"
        }
    }
}

/// Content that was too large for a result.
package struct Artifact: Hashable, Sendable {
    package let bytes: [UInt8]
    package let mimeType: String

    package init(bytes: [UInt8], mimeType: String) {
        self.bytes = bytes
        self.mimeType = mimeType
    }

    /// Returns the ID of an artifact: the SHA-256 of its bytes, in lower-case hexadecimal digits.
    package static func sha(of bytes: [UInt8]) -> String {
        SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Reads stored artifacts.
package protocol ArtifactReader: Sendable {
    /// Returns nil if the artifact does not exist or belongs to other holders.
    func artifact(_ sha: String, for principal: Principal) async -> Artifact?
}
