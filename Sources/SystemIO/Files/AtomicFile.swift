package import FoundationEssentials
import Glibc

/// Replaces files atomically: after a crash, a file has the old or the new content.
package enum AtomicFile {
    /// Writes a temporary file with mode 0600 and renames it to `path`. Returns after the file is on disk.
    ///
    /// - Throws: `SocketError.failed`; there is no temporary file then.
    package static func replace(_ path: String, with content: Data) throws(SocketError) {
        let temporaryPath = "\(path).new"
        do {
            try create(temporaryPath, with: content)
            try SocketError.check(rename(temporaryPath, path), "rename", on: path)
            try syncFolder(of: path)
        } catch {
            unlink(temporaryPath)
            throw error
        }
    }

    /// Syncs the folder of a file with fsync(2), because a file's name is stored in its folder.
    ///
    /// - Throws: `SocketError.failed`.
    package static func syncFolder(of path: String) throws(SocketError) {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let folder = String(path.dropLast(name.count))
        let number = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        try SocketError.check(number, "open", on: folder)
        let descriptor = Descriptor(owning: number)
        try SocketError.check(fsync(descriptor.number), "fsync", on: folder)
    }

    /// Creates a file with mode 0600 in place of a temporary file that a crash may have left.
    ///
    /// - Throws: `SocketError.failed`; the file may then be incomplete.
    static func create(_ path: String, with content: Data) throws(SocketError) {
        unlink(path)
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        try SocketError.check(number, "open", on: path)
        let file = Descriptor(owning: number)
        var rest = content[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            try SocketError.check(CInt(clamping: count), "write", on: path)
            rest = rest.dropFirst(count)
        }
        try SocketError.check(fsync(file.number), "fsync", on: path)
    }
}
