extension Collection<UInt8> {
    /// The bytes without a byte order mark at their beginning, which a reader may ignore (RFC 8259, section 8.1).
    package var withoutByteOrderMark: SubSequence { starts(with: [0xEF, 0xBB, 0xBF]) ? dropFirst(3) : self[...] }
}
