/// The framing of a connection between an app and a debugger, the same in both directions.
package enum DebugFraming: String, Hashable, Sendable, CaseIterable {
    /// Byte 0xCE, the length of the content as a little-endian Int32, the content.
    case objcio = "objc.io"
    /// Bytes 0xCE and 0x00, the length of the content as a little-endian UInt32, the content.
    case jsonOverTCP = "json-over-tcp"

    /// The first byte of every frame.
    static let signature: UInt8 = 0xCE

    /// The number of bytes before the content.
    var headerSize: Int {
        switch self {
        case .objcio: 5
        case .jsonOverTCP: 6
        }
    }

    /// Returns one whole frame.
    package func frame(_ content: some Collection<UInt8>) -> [UInt8] {
        var frame: [UInt8] = []
        frame.reserveCapacity(headerSize + content.count)
        frame.append(Self.signature)
        if self == .jsonOverTCP { frame.append(0) }
        withUnsafeBytes(of: UInt32(content.count).littleEndian) { frame.append(contentsOf: $0) }
        frame.append(contentsOf: content)
        return frame
    }
}
