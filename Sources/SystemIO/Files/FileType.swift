import Glibc

/// The type of a file (inode(7)).
///
/// The two programs load Foundation through TLS, and the compiler then takes `stat` for a type of CoreFoundation. They
/// ask for a file's type here.
package enum FileType: Hashable, Sendable {
    case regular
    case folder
    case other

    /// Looks up the type of an open file. Returns nil after an error, which is in `errno`.
    package init?(of descriptor: CInt) {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { return nil }
        self.init(mode: facts.st_mode)
    }

    /// Looks up the type of a file and follows symbolic links. Returns nil after an error, which is in `errno`.
    package init?(atPath path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        self.init(mode: facts.st_mode)
    }

    private init(mode: mode_t) {
        switch mode & S_IFMT {
        case S_IFREG: self = .regular
        case S_IFDIR: self = .folder
        default: self = .other
        }
    }
}

/// The device and the inode of an open file.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64

    /// Reads the identity; nil for an invalid descriptor.
    package init?(of descriptor: CInt) {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { return nil }
        (device, inode) = (UInt64(facts.st_dev), UInt64(facts.st_ino))
    }
}
