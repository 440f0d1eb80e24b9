import FoundationEssentials
import Glibc
package import Logging
import Model
import Sockets

/// Keeps the tunnels in a file, `tunnels.json`, so that they stand again after a restart.
///
/// After a crash the file is either the old one or the new one, never half of one. Runs on the files' own thread, because
/// fsync(2) takes as long as the disk likes.
package actor TunnelStore {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { SerialThread.files.asUnownedSerialExecutor() }

    private struct UnknownSchema: Error {
        let schema: Int
    }

    private let directory: String
    private let path: String
    private let logger: Logger
    /// Why the file must not be written: there is one that can neither be read nor set aside.
    private var obstacle: String?

    /// - Parameters:
    ///   - directory: Exists and is ours alone.
    ///   - logger: Where a file that cannot be read is reported.
    package init(directory: String, logger: Logger) {
        self.directory = directory
        path = "\(directory)/tunnels.json"
        self.logger = logger
    }

    /// What was saved last; an empty ledger when nothing was.
    ///
    /// A file that cannot be read never stops the broker and is never overwritten: it is set aside.
    func load() -> TunnelLedger {
        var data = Data()
        do {
            guard access(path, F_OK) == 0 || errno != ENOENT else { return TunnelLedger() }
            data = try Data(contentsOf: URL(filePath: path))
            let ledger = try Wire.decoder().decode(TunnelLedger.self, from: data)
            guard ledger.schema == 1 else { throw UnknownSchema(schema: ledger.schema) }
            return ledger
        } catch {
            let aside = freeName()
            if rename(path, aside) != 0 { obstacle = "the one that is there cannot be read: \(error)" }
            logger.error(
                "the kept tunnels cannot be read; starting without them",
                metadata: ["file": "\(path)", "set aside as": "\(obstacle == nil ? aside : "-")", "error": "\(error)"]
            )
            // At least the ids that can be made out are not given to other tunnels.
            let words = String(decoding: data, as: UTF8.self).split(separator: "\"")
            var ledger = TunnelLedger()
            ledger.next = (words.compactMap(TunnelLedger.number).max() ?? 0) &+ 1
            return ledger
        }
    }

    /// Replaces what is kept. When it returns, it is on the disk.
    ///
    /// - Throws: `TunnelError.notSaved`; then the file is as it was.
    func save(_ ledger: TunnelLedger) throws(TunnelError) {
        if let obstacle { throw .notSaved(path: path, obstacle) }
        let fresh = "\(path).new"
        do {
            let data = try Wire.encoder().encode(ledger)
            try write(data, to: fresh)
            try check(rename(fresh, path), "rename")
            // The name is in the directory's own data.
            let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            try check(folder, "open")
            defer { close(folder) }
            try check(fsync(folder), "fsync")
        } catch {
            unlink(fresh)
            throw .notSaved(path: path, "\(error)")
        }
    }

    private func write(_ data: Data, to fresh: String) throws {
        let number = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try check(number, "open")
        let file = Descriptor(owning: number)
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            try check(CInt(clamping: count), "write")
            rest = rest.dropFirst(count)
        }
        try check(fsync(file.number), "fsync")
    }

    private func check(_ result: CInt, _ call: String) throws {
        guard result < 0 else { return }
        throw SocketError.failed(call: call, on: path, code: errno)
    }

    private func freeName() -> String {
        var name = "\(path).unreadable"
        var number = 2
        while access(name, F_OK) == 0 {
            name = "\(path).unreadable-\(number)"
            number += 1
        }
        return name
    }
}
