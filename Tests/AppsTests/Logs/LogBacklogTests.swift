import Model
import Samples
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct LogBacklogTests {
    private func line(_ number: Int, size: Int = 1) -> LogBacklog.Event {
        .line(.sample("\(number) " + String(repeating: "x", count: size)))
    }

    private func number(_ event: LogBacklog.Event) -> Int? {
        if case .line(let line) = event { line.text.split(separator: " ").first.flatMap { Int($0) } } else { nil }
    }

    @Test func `events come in order, and the rest comes before the end`() async {
        let backlog = LogBacklog()
        backlog.append([line(1), .note("gone")])
        #expect(await backlog.next() == [line(1), .note("gone")])
        backlog.append([line(2)])
        backlog.finish()
        #expect(await backlog.next() == [line(2)])
        #expect(await backlog.next() == nil)
    }

    @Test(arguments: [1, 4_000]) func `a slow reader loses the oldest lines, is told how many, and keeps notes`(
        size: Int
    )
        async throws
    {
        let backlog = LogBacklog()
        backlog.append([.note("gone")])
        for number in 0..<10_000 { backlog.append([line(number, size: size)]) }
        let events = try #require(await backlog.next())

        #expect(events.count <= LogBacklog.limit + 2)
        guard case .lost(let count)? = events.first else { return #expect(Bool(false), "nothing is told") }
        #expect(events[1] == .note("gone"))
        let numbers = events.compactMap(number)
        #expect(numbers == Array(count..<10_000) && numbers.count * size <= LogBacklog.byteLimit)
    }
}
