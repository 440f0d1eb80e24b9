import Glibc

/// What `errno` says.
enum SystemCode {
    static var text: String { text(errno) }

    static func text(_ code: CInt) -> String { String(cString: strerror(code)) }
}
