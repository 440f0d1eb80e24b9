import Glibc

/// The status of a file (stat(2), inode(7)).
///
/// The two programs load Foundation through their libraries, and the compiler may then take `stat` for a type of
/// CoreFoundation. They read the status here.
package struct FileStatus: Hashable, Sendable {
    package enum FileType: Hashable, Sendable {
        case regular
        case folder
        case socket
        case link
        case other
    }

    package let type: FileType
    /// The permission bits with set-user-ID, set-group-ID and the sticky bit: 0o000 to 0o7777.
    package let mode: UInt32
    /// The number of hard links.
    package let links: Int
    package let owner: UInt32
    package let group: UInt32
    /// The size in bytes.
    package let size: Int
    /// The time of the last change of the content, in seconds since 1970.
    package let modificationTime: Int
    package let device: UInt64
    package let inode: UInt64

    /// Reads the status of an open file. Nil after an error, which is in `errno`.
    package init?(of descriptor: CInt) {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { return nil }
        self.init(facts)
    }

    /// Reads the status of a file. Nil after an error, which is in `errno`.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - followsLinks: If false, a symbolic link itself is the file (lstat(2)).
    package init?(atPath path: String, followsLinks: Bool = true) {
        var facts = stat()
        guard (followsLinks ? stat(path, &facts) : lstat(path, &facts)) == 0 else { return nil }
        self.init(facts)
    }

    private init(_ facts: stat) {
        type =
            switch facts.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            case S_IFSOCK: .socket
            case S_IFLNK: .link
            default: .other
            }
        mode = facts.st_mode & 0o7777
        links = Int(facts.st_nlink)
        (owner, group) = (facts.st_uid, facts.st_gid)
        (size, modificationTime) = (Int(facts.st_size), facts.st_mtim.tv_sec)
        (device, inode) = (UInt64(facts.st_dev), UInt64(facts.st_ino))
    }

    /// True if only the owner can read, write or execute the file.
    package var isPrivate: Bool { mode & 0o077 == 0 }

    /// The mode as chmod(1) takes it, for example `0640`.
    package var modeText: String { "0" + String(mode, radix: 8) }
}
