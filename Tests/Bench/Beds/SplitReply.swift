/// A reply in two small writes, which Nagle's algorithm and delayed acknowledgements can delay by 40 ms.
enum SplitReply {
    static let half = 32
    /// The pause between the two writes.
    static let gap = Duration.microseconds(300)
}
