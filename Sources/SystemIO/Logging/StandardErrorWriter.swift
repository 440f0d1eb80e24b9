import Glibc

/// Writes text to standard error, independent of the log level.
package struct StandardErrorWriter: Sendable {
    package static let standardError = StandardErrorWriter(descriptor: 2)
    package let descriptor: CInt

    package init(descriptor: CInt) { self.descriptor = descriptor }

    package func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
