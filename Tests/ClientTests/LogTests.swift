import Client
import Foundation
import Model
import Samples
import Testing

/// The requests for logs of phones, and their events.
@Suite struct LogTests {
    private static let line = """
        {"time":"11-26 10:00:00.000","uid":"10234","pid":47,"tid":48,"level":"I","tag":"Shop","text":"hallo"}
        """

    @Test func `the newest lines of an app are one document`() async throws {
        let body = #"{"schema":1,"lines":[\#(Self.line)]}"#
        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let lines = try await client.logs.lines(of: .endpoint("shop"), count: 7)

            #expect(lines.map(\.description) == ["11-26 10:00:00.000    47 I Shop: hallo"])
            #expect(broker.requests.first?.hasPrefix("GET /v1/endpoints/shop/log?lines=7 HTTP/1.1") == true)
        }
    }

    @Test func `the events of a log come in order, and a problem ends it`() async throws {
        let problem = Problem(.forbidden, "another app has this user")
        let pieces = [
            ScriptedBroker.streamHead, "event: begin\ndata: {\"lines\":1}\n\n", "event: line\ndata: \(Self.line)\n\n",
            "event: lost\ndata: {\"lines\":12}\n\n", "event: note\ndata: {\"text\":\"gone\\u001b\"}\n\n",
            "event: novelty\ndata: 1\n\n", "event: problem\ndata: \(try SampleDocuments.json(problem))\n\n",
        ]
        let udid: UDID = "android-R58M12ABCDE"
        try await ScriptedBroker.with(.pieces(pieces)) { broker, client in
            var (events, begins): ([PhoneLogEvent<PhoneLogLine>], Int) = ([], 0)
            let error = await #expect(throws: ClientError.self) {
                try await client.logs.follow(.device(udid), count: 0, opened: { begins += 1 }) { events.append($0) }
            }

            #expect(error == .refused(problem))
            #expect(begins == 1 && events.count == 3)
            #expect(Array(events.dropFirst()) == [.lost(12), .note("gone\u{FFFD}")])
            let target = "GET /v1/devices/android-R58M12ABCDE/log?lines=0&follow=true HTTP/1.1"
            #expect(broker.requests.first?.hasPrefix(target) == true)
        }
    }
}
