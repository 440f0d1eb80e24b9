import Glibc

/// Messages for `errno`.
enum SystemCode {
    static var text: String { text(errno) }

    static func text(_ code: CInt) -> String { String(cString: strerror(code)) }
}
