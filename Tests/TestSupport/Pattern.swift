/// Bytes that tell their own place: one lost, doubled or swapped anywhere shows.
package enum Pattern {
    /// The byte at an offset; the sequence repeats after 2³² bytes at the earliest.
    @inline(__always)
    package static func byte(at offset: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt32(truncatingIfNeeded: offset) &* 2_654_435_761) >> 19)
    }

    package static func bytes(_ range: Range<Int>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            for index in 0..<range.count { buffer[index] = byte(at: range.lowerBound + index) }
            count = range.count
        }
    }

    package static func matches(_ bytes: some Collection<UInt8>, from offset: Int) -> Bool {
        var offset = offset
        for byte in bytes {
            guard byte == Self.byte(at: offset) else { return false }
            offset += 1
        }
        return true
    }
}
