/// What an app may take of us while it answers.
struct UpstreamLimits: Hashable, Sendable {
    /// How long nothing may come: neither bytes of an answer nor a message on its stream.
    var silence: Duration = .seconds(15)
    /// How long the whole may take, however much it tells on the way.
    var longest: Duration = .seconds(120)
    /// The most bytes of one answer.
    var bytes = 32 * 1_048_576

    /// For questions that are answered without work.
    static let introduction = UpstreamLimits(silence: .seconds(5), longest: .seconds(10), bytes: 1_048_576)

    /// For a stream on which an app tells of changes.
    static func listening(for silence: Duration) -> UpstreamLimits {
        UpstreamLimits(silence: silence, longest: .seconds(86_400), bytes: .max)
    }

    /// The same on a stream of lines, whose end shows: what it is told comes beside it, and not as its answer.
    static let following = UpstreamLimits(silence: .seconds(86_400), longest: .seconds(86_400), bytes: .max)

    /// For a server that may not answer at all to what it does not know.
    static let greeting = UpstreamLimits(silence: .seconds(2), longest: .seconds(2), bytes: 1_048_576)
}
