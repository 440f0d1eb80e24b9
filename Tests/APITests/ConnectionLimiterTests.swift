import Testing

@testable import API

@Suite struct ConnectionLimiterTests {
    @Test func `a client counts as present until a minute after its connection ended`() {
        let crowd = ConnectionLimiter()
        let end = ContinuousClock.now
        #expect(!crowd.isPresent())

        crowd.enter()
        crowd.enter()
        crowd.leave(at: end)
        #expect(crowd.isPresent(at: end + .seconds(3_600)))

        crowd.leave(at: end)
        #expect(crowd.isPresent(at: end + .seconds(59)))
        #expect(!crowd.isPresent(at: end + .seconds(60)))
    }
}
