import Testing

@testable import Discovery

@Suite struct LookupTimingTests {
    private let quiet = LookupTiming(failed: LookupTiming.crowdThreshold)
    private let crowded = LookupTiming(failed: LookupTiming.crowdThreshold + 1)

    @Test func `lookups get a shorter time limit in a crowd, and first lookups the shortest`() {
        #expect(quiet.timeout(isFirst: true) == .milliseconds(500))
        #expect(quiet.timeout(isFirst: false) == .milliseconds(500))
        #expect(crowded.timeout(isFirst: false) == .milliseconds(250))
        #expect(crowded.timeout(isFirst: true) == .milliseconds(60))
    }

    @Test func `retry delays grow with consecutive failures and, from the third retry, with the crowd`() {
        let delays = (0...4).map { quiet.retryDelay(earlierFailures: $0) }
        #expect(delays == [.seconds(1), .seconds(5), .seconds(15), .seconds(60), .seconds(60)])

        let flood = LookupTiming(failed: 3 * LookupTiming.crowdThreshold)
        let longer = (0...3).map { flood.retryDelay(earlierFailures: $0) }
        #expect(longer == [.seconds(1), .seconds(5), .seconds(45), .seconds(180)])
    }
}
