/// The failure of a benchmark stream.
enum BenchError: Error, Hashable {
    /// No byte was transferred within the timeout.
    case hung
    /// The other side closed too early.
    case ended
    /// The received bytes differ from the sent ones.
    case garbled
    case failed(call: String, words: String)
}

extension BenchError: CustomStringConvertible {
    var description: String {
        switch self {
        case .hung: "hangs"
        case .ended: "closed too early"
        case .garbled: "other bytes came than were sent"
        case .failed(let call, let words): "\(call): \(words)"
        }
    }
}
