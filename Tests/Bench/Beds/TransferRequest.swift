/// The first bytes of a stream to a `sink` or `source`: the requested transfer.
///
/// The length is sent first, because iproxy and usbmuxd do not support half-close.
struct TransferRequest: Hashable, Sendable {
    static let size = 16

    let length: Int
    /// True if the bytes are those of `Pattern` and are checked; otherwise they are zero.
    let isPattern: Bool

    init(length: Int, isPattern: Bool = false) {
        self.length = length
        self.isPattern = isPattern
    }

    /// Decodes a request; nil if the bytes are invalid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.size else { return nil }
        let (length, mode) = bytes.withUnsafeBytes {
            (UInt64(littleEndian: $0.load(as: UInt64.self)), $0.load(fromByteOffset: 8, as: UInt64.self))
        }
        guard let count = Int(exactly: length) else { return nil }
        self.init(length: count, isPattern: mode != 0)
    }

    var bytes: [UInt8] { Self.bytes(of: length) + Self.bytes(of: isPattern ? 1 : 0) }

    private static func bytes(of number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt64(number).littleEndian, Array.init)
    }
}
