import FoundationEssentials
import Testing

@testable import Apps

@Suite struct StateHistoryTests {
    private static func message(_ number: Int, picture: Int = 0) throws -> DebugMessage {
        let picture = picture > 0 ? DebugLinkFixture.picture(picture) : ""
        let text = #"{"state":\#(number),"imageData":"\#(picture)"}"#
        return try DebugMessage(parsing: Array(text.utf8))
    }

    /// Returns a history with one message for each picture of this size in bytes.
    private static func history(pictures: [Int], states: Int = 50, bytes: Int = 1_000_000) throws -> StateHistory {
        var history = StateHistory(countLimit: states, byteLimit: bytes)
        for (index, size) in pictures.enumerated() { history.append(try message(index + 1, picture: size), at: Date()) }
        return history
    }

    @Test func `the newest states are held, and keep their numbers`() throws {
        let history = try Self.history(pictures: Array(repeating: 4, count: 60))

        #expect(history.states.map(\.number) == Array(11...60))
        #expect(try history.state(11) == Array("11".utf8)[...])
        #expect(history.last == Array("60".utf8)[...])
        #expect(history.lastNumber == 60)
        #expect(history.droppedStates == 10)
        for number in [0, 10, 61] {
            #expect(throws: DebugLinkError.noSuchState(number, held: 11...60)) { try history.state(number) }
        }
    }

    @Test func `above the memory limit the oldest pictures are dropped before any state`() throws {
        let history = try Self.history(pictures: Array(repeating: 400, count: 5), bytes: 1_000)

        #expect(history.bytes <= 1_000)
        #expect(history.droppedPictures == 3)
        #expect(history.droppedStates == 0)
        #expect(history.states.map(\.picture) == [.dropped, .dropped, .dropped, .held(bytes: 402), .held(bytes: 402)])
        #expect(try history.state(1) == Array("1".utf8)[...])
        #expect(throws: DebugLinkError.pictureDropped(state: 1)) { try history.messageWithPicture(1) }
        #expect(try history.messageWithPicture(5).pictureSize == 402)
    }

    @Test func `without a picture the oldest states are dropped`() throws {
        var history = try Self.history(pictures: [4, 4, 4])
        let texts = ["1", "2", "3"].map { $0.utf8.count }
        for _ in 0..<3 { history.shed() }
        #expect(history.bytes == texts.reduce(0, +))
        #expect(history.droppedPictures == 3)

        history.shed()

        #expect(history.states.map(\.number) == [2, 3])
        for _ in 0..<3 { history.shed() }
        #expect(history.bytes == 0)
        #expect(history.states.isEmpty)
        #expect(history.lastNumber == 3)
        #expect(throws: DebugLinkError.noSuchState(3, held: nil)) { try history.state(3) }
    }

    @Test func `a picture above the limit is dropped at once, and its state is held`() throws {
        let history = try Self.history(pictures: [2_000], bytes: 1_000)

        #expect(history.states.map(\.picture) == [.dropped])
        #expect(history.last == Array("1".utf8)[...])
    }

    @Test func `an invalid picture is reported, and its state is held`() throws {
        var history = StateHistory(countLimit: 50, byteLimit: 1_000)
        history.append(try DebugMessage(parsing: Array(#"{"state":{},"imageData":"%"}"#.utf8)), at: Date())

        #expect(history.states.map(\.picture) == [.invalid])
        #expect(history.last == Array("{}".utf8)[...])
        #expect(throws: DebugLinkError.invalidPicture(state: 1)) { try history.messageWithPicture(1) }
    }

    @Test func `a state without a picture says so`() throws {
        var history = StateHistory(countLimit: 50, byteLimit: 1_000)
        history.append(try DebugMessage(parsing: Array(#"{"state":{}}"#.utf8)), at: Date())

        #expect(history.states.map(\.picture) == [.none])
        #expect(throws: DebugLinkError.noPicture(state: 1)) { try history.messageWithPicture(1) }
    }
}
