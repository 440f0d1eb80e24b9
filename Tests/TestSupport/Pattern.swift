/// A byte sequence that encodes its own offsets, so that a lost, repeated or swapped byte is detected.
package enum Pattern {
    /// Returns the byte at an offset. The sequence repeats after 2³² bytes at the earliest.
    @inline(__always)
    package static func byte(at offset: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt32(truncatingIfNeeded: offset) &* 2_654_435_761) >> 19)
    }

    package static func bytes(_ range: Range<Int>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            guard var next = buffer.baseAddress else { return }
            count = range.count
            // Seven times as fast as `byte(at:)` for each byte in a debug build: a slow test delays the other tests.
            let end = next + count
            var product = UInt32(truncatingIfNeeded: range.lowerBound) &* 2_654_435_761
            while next != end {
                next.initialize(to: UInt8(truncatingIfNeeded: product >> 19))
                next += 1
                product &+= 2_654_435_761
            }
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
