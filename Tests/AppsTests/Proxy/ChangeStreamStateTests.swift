import Testing

@testable import Apps

@Suite struct ChangeStreamStateTests {
    @Test func `the first stream of an app has missed nothing`() {
        var state = ChangeStreamState()

        let hasMissed = state.opened(at: .seconds(1))

        #expect(!hasMissed)
        #expect(state.phase == .connected(since: .seconds(1)))
    }

    @Test func `a cut stream is opened again with backoff, and then may have missed changes`() {
        var state = ChangeStreamState()
        _ = state.opened(at: .zero)

        let steps = (1...10).map { state.ended(.cut, at: .seconds($0)) }
        let phase = state.phase
        let hasMissed = (1...2).map { state.opened(at: .seconds(20 + $0)) }

        #expect(phase == .cut)
        #expect(
            steps.prefix(3) == [
                .openAfter(.milliseconds(250)), .openAfter(.milliseconds(500)), .openAfter(.seconds(1)),
            ]
        )
        #expect(steps.last == .openAfter(ChangeStreamState.longestPause))
        #expect(hasMissed == [true, false])
    }

    @Test func `a stream that lasted resets the backoff, and a short one does not`() {
        var state = ChangeStreamState()
        for second in 1...10 { _ = state.ended(.cut, at: .seconds(second)) }

        _ = state.opened(at: .seconds(20))
        let short = state.ended(.cut, at: .seconds(21))
        _ = state.opened(at: .seconds(60))
        let long = state.ended(.cut, at: .seconds(120))

        #expect(short == .openAfter(ChangeStreamState.longestPause))
        #expect(long == .openAfter(ChangeStreamState.shortestPause))
    }

    @Test func `a renewed stream is opened at once and has missed nothing`() {
        var state = ChangeStreamState()
        _ = state.opened(at: .zero)

        let step = state.ended(.renewed, at: .seconds(1))
        let hasMissed = state.opened(at: .seconds(1))

        #expect(step == .open)
        #expect(!hasMissed)
    }

    @Test(arguments: [ChangeStreamState.End.unsupported, .unavailable])
    func `an app without a stream is tried again after a change of its state`(end: ChangeStreamState.End) {
        var state = ChangeStreamState()

        let step = state.ended(end, at: .zero)
        let phase = state.phase
        let hasMissed = state.opened(at: .seconds(1))

        #expect(step == .waitForStateChange)
        #expect(phase == .unsupported)
        #expect(hasMissed)
    }
}
