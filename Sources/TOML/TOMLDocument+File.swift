import FoundationEssentials
import Glibc
import SystemIO

extension TOMLDocument {
    /// Reads a file.
    package init(contentsOf file: String) throws(TOMLError) {
        try self.init(parsing: try Self.text(of: file), file: file)
    }

    /// Reads a file, and leaves the statements with a syntax error out.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - errors: Gets an error for each of them. A file with errors must be rejected.
    /// - Throws: The errors if no rest can be read.
    package init(recovering file: String, errors: inout TOMLErrorCollector) throws(TOMLError) {
        try self.init(recovering: try Self.text(of: file), file: file, errors: &errors)
    }

    private static func text(of file: String) throws(TOMLError) -> String {
        guard let text = String(validating: try bytes(of: file), as: UTF8.self), !text.utf8.contains(0) else {
            throw .notText(file: file)
        }
        return text
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
