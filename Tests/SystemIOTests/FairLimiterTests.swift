import SystemIO
import Testing

@Suite struct FairLimiterTests {
    @Test func `a holder that uses up the limit leaves a share for each other holder`() {
        let limiter = FairLimiter<String>(limit: 256)
        let greedy = (1...1_000).count { _ in limiter.acquire("greedy") }

        let first = (1...100).count { _ in limiter.acquire("first") }
        let second = (1...100).count { _ in limiter.acquire("second") }
        let third = (1...100).count { _ in limiter.acquire("third") }

        #expect(greedy == 256)
        #expect(first == 16 && second == 16)
        // The eighth above the limit is used up.
        #expect(third == 0)
    }

    @Test func `a returned unit is free again`() {
        let limiter = FairLimiter<String>(limit: 1)
        do {
            let permit = limiter.permit("one")
            #expect(permit != nil && limiter.permit("two") == nil)
            withExtendedLifetime(permit) {}
        }
        #expect(limiter.count == 0)
        #expect(limiter.permit("two") != nil)
    }
}
