/// How long apps are waited for.
package struct UpstreamTimeouts: Hashable, Sendable {
    /// For an app that is away, by itself.
    package var wait: Duration = .seconds(10)
    /// For a list that is known from an earlier time.
    package var list: Duration = .seconds(2)
    /// For each app where all are listed together.
    package var oneOfAll: Duration = .seconds(1)
    /// For an answer, while nothing comes, and altogether.
    package var silence: Duration = .seconds(15)
    package var longest: Duration = .seconds(120)
    /// For a word on a stream of changes, which is most of the time silent. A phone that went without one shows by it, as then
    /// the stream is opened anew.
    package var listening: Duration = .seconds(300)

    /// For a caller's answer to what an app asks it.
    package var question: Duration = .seconds(300)

    package init() {}

    var upstream: UpstreamLimits { UpstreamLimits(silence: silence, longest: longest) }
}
