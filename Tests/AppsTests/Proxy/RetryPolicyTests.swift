import Model
import Testing

@testable import Apps

@Suite struct RetryPolicyTests {
    private static let refused = AppError.unreachable(DialError(.refused, "nothing listens there"))
    private static let noRoute = AppError.unreachable(DialError(.noRoute, "it has no route"))

    private func decision(
        _ policy: inout RetryPolicy,
        after failure: AppError,
        at elapsed: Duration,
        sinceArrival: Duration?
    )
        -> RetryPolicy.Decision
    { policy.decision(after: failure, at: elapsed, sinceArrival: sinceArrival) }

    private func policy(mayRepeat: Bool = false) -> RetryPolicy { RetryPolicy(for: .seconds(10), mayRepeat: mayRepeat) }

    @Test func `an app without a route is waited for until the time limit`() {
        var policy = policy()

        #expect(decision(&policy, after: Self.noRoute, at: .zero, sinceArrival: nil) == .wait(atMost: .seconds(10)))
        #expect(
            decision(&policy, after: Self.noRoute, at: .seconds(7), sinceArrival: nil) == .wait(atMost: .seconds(3))
        )
        #expect(decision(&policy, after: Self.noRoute, at: .seconds(10), sinceArrival: nil) == .giveUp)
    }

    @Test func `an app that has a route and does not answer is polled four times a second`() {
        var policy = policy()

        #expect(
            decision(&policy, after: Self.refused, at: .seconds(1), sinceArrival: nil)
                == .wait(atMost: .milliseconds(250))
        )
        #expect(
            policy.decision(after: Self.refused, at: .milliseconds(9_900), sinceArrival: nil)
                == .wait(atMost: .milliseconds(100))
        )
        #expect(decision(&policy, after: Self.refused, at: .seconds(10), sinceArrival: nil) == .giveUp)
    }

    @Test func `a call without wait time fails at once`() {
        var policy = RetryPolicy(for: .zero, mayRepeat: true)

        #expect(decision(&policy, after: Self.refused, at: .zero, sinceArrival: nil) == .giveUp)
    }

    @Test func `a request that may have reached the app is not sent again`() {
        var policy = policy()

        #expect(decision(&policy, after: .responseLost, at: .zero, sinceArrival: nil) == .giveUp)
    }

    @Test func `a repeatable request is sent a second time but not a third time`() {
        var policy = policy(mayRepeat: true)

        #expect(decision(&policy, after: .responseLost, at: .zero, sinceArrival: nil) == .tryAgain)
        #expect(
            decision(&policy, after: Self.refused, at: .seconds(1), sinceArrival: nil)
                == .wait(atMost: .milliseconds(250))
        )
        #expect(decision(&policy, after: .responseLost, at: .seconds(2), sinceArrival: nil) == .giveUp)
    }

    @Test func `a call waits for the next token of an app that was relaunched within 5 s`() {
        var policy = policy()

        #expect(
            decision(&policy, after: .tokenRequired(.outdated), at: .zero, sinceArrival: .seconds(2))
                == .wait(atMost: .seconds(3))
        )
        #expect(decision(&policy, after: .tokenRequired(.outdated), at: .zero, sinceArrival: .seconds(6)) == .giveUp)
        #expect(decision(&policy, after: .tokenRequired(.outdated), at: .zero, sinceArrival: nil) == .giveUp)
    }

    @Test func `a call waits for the first token of an app that logs it`() {
        var policy = RetryPolicy(for: .seconds(10), mayRepeat: false, isTokenLogged: true)

        #expect(
            decision(&policy, after: .tokenRequired(.missing), at: .zero, sinceArrival: .seconds(2))
                == .wait(atMost: .seconds(3))
        )
        #expect(decision(&policy, after: .tokenRequired(.missing), at: .zero, sinceArrival: .seconds(6)) == .giveUp)
        #expect(decision(&policy, after: .tokenRequired(.rejected), at: .zero, sinceArrival: .seconds(1)) == .giveUp)
    }

    @Test func `a missing or rejected token is reported at once`() {
        var policy = policy()

        #expect(decision(&policy, after: .tokenRequired(.missing), at: .zero, sinceArrival: .seconds(1)) == .giveUp)
        #expect(decision(&policy, after: .tokenRequired(.rejected), at: .zero, sinceArrival: .seconds(1)) == .giveUp)
    }

    @Test func `permanent errors are reported at once`() {
        var policy = policy(mayRepeat: true)

        #expect(decision(&policy, after: .notApproved, at: .zero, sinceArrival: nil) == .giveUp)
        #expect(decision(&policy, after: .timedOut(seconds: 15), at: .zero, sinceArrival: nil) == .giveUp)
        #expect(decision(&policy, after: .invalidResponse("x"), at: .zero, sinceArrival: nil) == .giveUp)
        #expect(decision(&policy, after: .notMCP, at: .zero, sinceArrival: nil) == .giveUp)
        #expect(decision(&policy, after: .busy, at: .zero, sinceArrival: nil) == .giveUp)
    }
}
