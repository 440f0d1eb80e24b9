import FoundationEssentials
import Glibc
import Model
import SystemIO

/// A configuration file of another program, which is replaced as a whole or not at all.
struct ConfigurationFile {
    let path: String

    /// The largest file that is read. The state of Claude Code has some megabytes.
    private static let sizeLimit = 64 << 20

    /// The path for messages, with the file that a symbolic link leads to.
    var name: String { realPath == path ? path : "\(path) -> \(realPath)" }

    /// Returns the content; nil if the file does not exist.
    ///
    /// - Throws: `CLIError` if the file cannot be read.
    func content() throws(CLIError) -> [UInt8]? {
        guard let status = FileStatus(atPath: path) else {
            let code = errno
            if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) {
                throw CLIError.configuration(
                    "\(path) is a symbolic link to \(target), which cannot be read; nothing was changed",
                    try: "create \(SanitizedText(target, limit: 500)), or remove the link"
                )
            }
            if code == ENOENT { return nil }
            throw failure("cannot be read", code)
        }
        guard status.type == .regular, status.size <= Self.sizeLimit else {
            throw CLIError.configuration(
                "\(path) is not a file that can be changed; nothing was changed",
                try: "ls -l \(path.shellQuoted)"
            )
        }
        guard access(path, R_OK) == 0, let data = FileManager.default.contents(atPath: path) else {
            throw failure("cannot be read", errno)
        }
        return Array(data)
    }

    /// Runs the body while no other `patchbay` changes a file in this folder. Creates the folder.
    ///
    /// - Throws: `CLIError` if another process keeps the lock for 10 s.
    func locked<Value>(_ body: () throws -> Value) throws -> Value {
        let path = realPath
        try createFolder(of: path)
        // flock(2) of the folder itself, so no lock file remains.
        let number = open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw failure("cannot be locked", errno) }
        let descriptor = Descriptor(owning: number)
        var attempts = 0
        while flock(descriptor.number, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK || errno == EINTR {
            attempts += 1
            guard attempts < 1000 else {
                throw CLIError.temporary(
                    "another process has locked the folder of \(path) for 10 s; nothing was changed",
                    try: "run the command again"
                )
            }
            // flock(2) has no time limit, and no event reports the end of another process' lock.
            usleep(10_000)
        }
        return try body()
    }

    /// Replaces the file. The new file has the mode and the owner of the old one, and a symbolic link stays.
    ///
    /// - Parameters:
    ///   - old: The content that was read; nil for a new file.
    ///   - new: The new content.
    ///   - mode: The mode of a new file.
    /// - Throws: `CLIError`; the file then has its old content.
    func replace(_ old: [UInt8]?, with new: [UInt8], mode: mode_t) throws(CLIError) {
        let path = realPath
        try createFolder(of: path)
        let status = FileStatus(atPath: path)
        if let status { try requireReplaceable(path, status) }
        // One name, so that the next run removes what a killed one has left.
        let temporary = "\(path).patchbay-new"
        do throws(CLIError) {
            try write(new, to: temporary, mode: status?.mode ?? mode, like: status)
            // Last, because other programs take no lock.
            guard try content() == old else {
                throw CLIError.temporary(
                    "another program has changed \(self.path) meanwhile; nothing was changed",
                    try: "run the command again"
                )
            }
            guard rename(temporary, path) == 0 else { throw failure("cannot be replaced", errno) }
        } catch {
            unlink(temporary)
            throw error
        }
        try? AtomicFile.syncFolder(of: path)
    }

    /// Throws if a new file in place of the old one would break what its user wants: protection, or a second name.
    private func requireReplaceable(_ path: String, _ status: FileStatus) throws(CLIError) {
        let word = path.shellQuoted
        // For root, access(2) permits every write.
        if status.mode & 0o200 == 0 || access(path, W_OK) != 0 {
            throw CLIError.configuration("\(name) is read-only; nothing was changed", try: "chmod u+w \(word)")
        }
        if status.links > 1 {
            throw CLIError.configuration(
                "\(name) is a hard link, which a new file would separate from its other names; "
                    + "nothing was changed",
                try: "find ~ -samefile \(word) shows the names; add the lines by hand: --dry-run shows them"
            )
        }
    }

    /// The path behind symbolic links.
    private var realPath: String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private func folder(of path: String) -> String {
        String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) + "/"
    }

    private func createFolder(of path: String) throws(CLIError) {
        let folder = folder(of: path)
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            throw CLIError.configuration(
                "the folder \(folder) cannot be created; nothing was changed",
                try: "check the permissions of its parent folder"
            )
        }
    }

    private func write(_ bytes: [UInt8], to temporary: String, mode: mode_t, like old: FileStatus?) throws(CLIError) {
        unlink(temporary)
        let file: Descriptor
        do { file = try Descriptor(creating: temporary) } catch { throw failure("cannot be replaced", error.reason) }
        let number = file.number
        if let old, old.owner != geteuid() || old.group != getegid() {
            // A file in a folder with the bit S_ISGID gets the right group without this call.
            let isDone = fchown(number, old.owner, old.group) == 0
            guard isDone || old.owner == geteuid() else { throw failure("belongs to another user", errno) }
        }
        guard fchmod(number, mode) == 0 else { throw failure("cannot be replaced", errno) }
        do { try file.write(bytes, to: temporary) } catch { throw failure("cannot be written", error.reason) }
        guard fsync(number) == 0 else { throw failure("cannot be written", errno) }
    }

    private func failure(_ what: String, _ code: CInt) -> CLIError { failure(what, SocketError.message(for: code)) }

    private func failure(_ what: String, _ reason: String) -> CLIError {
        CLIError.configuration(
            "\(path) \(what): \(reason); nothing was changed",
            try: "check the permissions of the file and of its folder, or add the lines by hand: --dry-run shows them"
        )
    }
}
