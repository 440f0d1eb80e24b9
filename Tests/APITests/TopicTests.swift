import AccessControl
import HTTPTypes
import Model
import Synchronization
import Testing

@testable import API

@Suite struct TopicTests {
    private static let start = ContinuousClock.now

    @Test func `each topic is the name of a route`() throws {
        for topic in Topic.allCases {
            #expect(try RouteTable.route(.get, "/v1/\(topic.rawValue)").route.path == "/v1/\(topic.rawValue)")
        }
    }

    @Test func `topics are named in the query`() throws {
        #expect(try Topic.topics(named: "all") == Set(Topic.allCases))
        #expect(try Topic.topics(named: "tunnels,access-requests") == [.tunnels, .accessRequests])
        #expect(try Topic.topics(named: "activity").isEmpty)
        #expect(Topic.includesActivity("all") && Topic.includesActivity("tunnels,activity"))
        #expect(!Topic.includesActivity("tunnels"))
        for wrong in ["", "weather", "tunnels,", "Tunnels", "all,tunnels"] {
            #expect(throws: Problem.self) { try Topic.topics(named: wrong) }
        }
    }

    @Test func `a document is read once a second for all clients of an audience`() async throws {
        let reader = TopicReader()
        let reads = Mutex(0)
        func read(_ audience: String, after milliseconds: Int) async -> [UInt8]? {
            let now = Self.start + .milliseconds(milliseconds)
            return await reader.document(of: .tunnels, for: audience, at: now) {
                [
                    UInt8(
                        truncatingIfNeeded: reads.withLock { count in
                            count += 1
                            return count
                        }
                    )
                ]
            }
        }

        for milliseconds in [0, 1, 500, 899] { #expect(await read("owners", after: milliseconds) == [1]) }
        #expect(await read("grant:1", after: 899) == [2])
        #expect(await read("owners", after: 1_000) == [3])
        #expect(await read("owners", after: 1_000) == [3])
    }

    @Test func `a failed read keeps the last document, and unused documents are dropped`() async throws {
        let reader = TopicReader()
        _ = await reader.document(of: .tunnels, for: "owners", at: Self.start) { [1] }
        let kept = await reader.document(of: .tunnels, for: "owners", at: Self.start + .seconds(1)) {
            throw CancellationError()
        }
        #expect(kept == [1])
        _ = await reader.document(of: .leases, for: "owners", at: Self.start + .seconds(20)) { [2] }
        #expect(await reader.count == 1)
    }
}
