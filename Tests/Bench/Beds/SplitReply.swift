/// The reply in two small writes, which Nagle's algorithm and a delayed acknowledgement turn into 40 ms.
enum SplitReply {
    static let half = 32
    /// Between the two writes.
    static let gap = Duration.microseconds(300)
}
