import Model
import Testing

@testable import MCP

@Suite struct RetryPolicyTests {
    private static let refused = Trouble.unreachable(DialError(.refused, "nothing listens there"))
    private static let gone = Trouble.unreachable(DialError(.noRoute, "it has no route"))
    private let id: EndpointID

    init() throws { id = try #require(EndpointID("shop-iphone")) }

    private func move(_ hold: inout RetryPolicy, after trouble: Trouble, at elapsed: Duration, sinceArrival: Duration?)
        -> RetryPolicy.Move
    {
        hold.move(after: trouble, at: elapsed, sinceArrival: sinceArrival)
    }

    private func hold(mayRepeat: Bool = false) -> RetryPolicy {
        RetryPolicy(of: id, for: .seconds(10), mayRepeat: mayRepeat)
    }

    @Test func `an app without a place is waited for until the time is over`() {
        var hold = hold()

        #expect(move(&hold, after: Self.gone, at: .zero, sinceArrival: nil) == .wait(atMost: .seconds(10)))
        #expect(move(&hold, after: Self.gone, at: .seconds(7), sinceArrival: nil) == .wait(atMost: .seconds(3)))
        #expect(move(&hold, after: Self.gone, at: .seconds(10), sinceArrival: nil) == .giveUp(.away(id)))
    }

    @Test func `an app that has a place and does not answer there is knocked at four times a second`() {
        var hold = hold()

        #expect(
            move(&hold, after: Self.refused, at: .seconds(1), sinceArrival: nil) == .wait(atMost: .milliseconds(250))
        )
        #expect(
            hold.move(after: Self.refused, at: .milliseconds(9_900), sinceArrival: nil)
                == .wait(atMost: .milliseconds(100))
        )
        #expect(move(&hold, after: Self.refused, at: .seconds(10), sinceArrival: nil) == .giveUp(.away(id)))
    }

    @Test func `who does not want to wait is told at once`() {
        var hold = RetryPolicy(of: id, for: .zero, mayRepeat: true)

        #expect(move(&hold, after: Self.refused, at: .zero, sinceArrival: nil) == .giveUp(.away(id)))
    }

    @Test func `what may have reached the app is not sent again`() {
        var hold = hold()

        #expect(move(&hold, after: .lost, at: .zero, sinceArrival: nil) == .giveUp(.lostAfterDelivery(id)))
    }

    @Test func `what may be repeated is sent once more, and not a third time`() {
        var hold = hold(mayRepeat: true)

        #expect(move(&hold, after: .lost, at: .zero, sinceArrival: nil) == .tryAgain)
        #expect(
            move(&hold, after: Self.refused, at: .seconds(1), sinceArrival: nil) == .wait(atMost: .milliseconds(250))
        )
        #expect(move(&hold, after: .lost, at: .seconds(2), sinceArrival: nil) == .giveUp(.lostAfterDelivery(id)))
    }

    @Test func `a new token is waited for where there was one, or where the app has just been started`() {
        var hold = hold()

        #expect(
            move(&hold, after: .wantsSecret(.rejected), at: .zero, sinceArrival: nil) == .wait(atMost: .seconds(10))
        )
        #expect(
            move(&hold, after: .wantsSecret(.outdated), at: .seconds(9), sinceArrival: nil)
                == .wait(atMost: .seconds(1))
        )
        #expect(
            move(&hold, after: .wantsSecret(.missing), at: .zero, sinceArrival: .seconds(2))
                == .wait(atMost: .seconds(10))
        )
        #expect(
            move(&hold, after: .wantsSecret(.missing), at: .zero, sinceArrival: .seconds(60))
                == .giveUp(.needsSecret(id))
        )
        #expect(move(&hold, after: .wantsSecret(.missing), at: .zero, sinceArrival: nil) == .giveUp(.needsSecret(id)))
        #expect(
            move(&hold, after: .wantsSecret(.rejected), at: .seconds(10), sinceArrival: nil)
                == .giveUp(.needsSecret(id))
        )
    }

    @Test func `what waiting cannot mend is told at once`() {
        var hold = hold(mayRepeat: true)

        #expect(move(&hold, after: .notApproved, at: .zero, sinceArrival: nil) == .giveUp(.notApproved(id)))
        #expect(
            move(&hold, after: .silent(seconds: 15), at: .zero, sinceArrival: nil) == .giveUp(.tooSlow(id, seconds: 15))
        )
        #expect(move(&hold, after: .unclear("x"), at: .zero, sinceArrival: nil) == .giveUp(.unclear(id, "x")))
        #expect(move(&hold, after: .noMCP, at: .zero, sinceArrival: nil) == .giveUp(.noTools(id)))
        #expect(move(&hold, after: .busy, at: .zero, sinceArrival: nil) == .giveUp(.busy(id)))
    }
}
