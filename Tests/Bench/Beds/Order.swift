/// What a client wants of a `sink` or a `source`: the first bytes of its stream.
///
/// The length goes first because the end of a stream says nothing: iproxy and usbmuxd know no half-close.
struct Order: Hashable, Sendable {
    static let size = 16

    let length: Int
    /// Whether the bytes are those of `Pattern`, so that each can be checked; else they are zero.
    let isPattern: Bool

    init(length: Int, isPattern: Bool = false) {
        self.length = length
        self.isPattern = isPattern
    }

    /// Nil unless these are the bytes of one.
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
