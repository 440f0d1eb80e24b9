import Glibc

/// Standard error as a place for text that a person must see even when logging is off.
struct StandardErrorWriter: Sendable {
    static let standardError = StandardErrorWriter(descriptor: 2)
    let descriptor: CInt

    func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
