/// What became of a stream that should have carried bytes.
enum BenchError: Error, Hashable {
    /// No byte moved for as long as the client was ready to wait.
    case hung
    /// The other end closed before everything was there.
    case ended
    /// Other bytes came than were sent.
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
