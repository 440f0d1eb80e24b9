package import FoundationEssentials
import Glibc

/// Replaces files atomically: after a crash, a file has the old or the new content.
package enum AtomicFile {
    /// Writes a temporary file and renames it to `path`. Returns after the file is on disk.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - content: The new content.
    ///   - mode: The mode of the new file, which the process's umask limits.
    /// - Throws: `SocketError.failed`; there is no temporary file then.
    package static func replace(_ path: String, with content: Data, mode: UInt32 = 0o600) throws(SocketError) {
        let temporaryPath = "\(path).new"
        do {
            try create(temporaryPath, with: content, mode: mode)
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

    /// Creates a file in place of a temporary file that a crash may have left.
    ///
    /// - Throws: `SocketError.failed`; the file may then be incomplete.
    static func create(_ path: String, with content: Data, mode: UInt32 = 0o600) throws(SocketError) {
        unlink(path)
        let file = try Descriptor(creating: path, mode: mode)
        try file.write(content, to: path)
        try SocketError.check(fsync(file.number), "fsync", on: path)
    }
    /// Returns a path that no file has: the given one, or with `-2`, `-3` and so on.
    package static func unusedPath(_ path: String) -> String {
        var (unused, number) = (path, 1)
        while access(unused, F_OK) == 0 {
            number += 1
            unused = "\(path)-\(number)"
        }
        return unused
    }
}

extension Descriptor {
    /// Creates an empty file, open for writing.
    ///
    /// - Throws: `SocketError.failed`, also if there is a file.
    package init(creating path: String, mode: UInt32 = 0o600) throws(SocketError) {
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        try SocketError.check(number, "open", on: path)
        self.init(owning: number)
    }

    /// Writes all bytes to a file; `path` is for the error.
    ///
    /// - Throws: `SocketError.failed`; a part may be written then.
    package func write(_ content: some ContiguousBytes, to path: String) throws(SocketError) {
        let code: CInt = content.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Glibc.write(number, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { return errno }
                rest = rest.dropFirst(count)
            }
            return 0
        }
        if code != 0 { throw .failed(call: "write", on: path, code: code) }
    }
}
