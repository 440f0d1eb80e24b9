import FoundationEssentials
import Glibc
import SystemIO

extension TOMLDocument {
    /// Reads a file.
    package init(contentsOf file: String) throws(TOMLError) {
        guard let text = String(validating: try Self.bytes(of: file), as: UTF8.self), !text.utf8.contains(0) else {
            throw .notText(file: file)
        }
        try self.init(parsing: text, file: file)
    }

    private static func bytes(of file: String) throws(TOMLError) -> [UInt8] {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(file, errno) }
        defer { close(descriptor) }
        guard let type = FileStatus(of: descriptor)?.type else { throw unreadable(file, errno) }
        guard type == .regular else {
            throw .unreadable(
                file: file,
                reason: "it is \(type == .folder ? "a folder" : "no regular file"); name a TOML file"
            )
        }
        guard let data = FileManager.default.contents(atPath: file) else { throw unreadable(file, errno) }
        return Array(data)
    }

    private static func unreadable(_ file: String, _ code: CInt) -> TOMLError {
        let hint =
            switch code {
            case ENOENT, ENOTDIR: "check the path"
            case EACCES, EPERM: "let the broker's user read it"
            default: "try another file"
            }
        return .unreadable(file: file, reason: "\(SocketError.message(for: code)); \(hint)")
    }
}
