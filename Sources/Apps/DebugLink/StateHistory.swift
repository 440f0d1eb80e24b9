import FoundationEssentials

/// The newest states of one app with their actions and pictures.
///
/// Pictures are dropped before states, the oldest first: a state is small, and only it can be sent again.
struct StateHistory: Sendable {
    private struct Entry {
        let number: Int
        let receivedAt: Date
        var message: DebugMessage
        var isPictureDropped = false

        var picture: DebugStateSummary.Picture {
            if isPictureDropped { return .dropped }
            if message.hasInvalidPicture { return .invalid }
            return message.pictureSize.map { .held(bytes: $0) } ?? .none
        }
    }

    private let countLimit: Int
    private let byteLimit: Int
    private var entries: [Entry] = []
    /// The number of the newest state, 0 before the first one.
    private(set) var lastNumber = 0
    /// The memory that the held states and pictures need in bytes.
    private(set) var bytes = 0
    private(set) var droppedPictures = 0
    private(set) var droppedStates = 0

    /// Creates an empty history.
    ///
    /// - Parameters:
    ///   - countLimit: The maximum number of states.
    ///   - byteLimit: The limit of the memory in bytes.
    init(countLimit: Int, byteLimit: Int) {
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    /// The newest state as received; nil before the first one, or if it was dropped.
    var last: ArraySlice<UInt8>? { entries.last?.message.state }

    /// The descriptions of the held states, the oldest first.
    var states: [DebugStateSummary] {
        entries.map { entry in
            DebugStateSummary(
                number: entry.number,
                receivedAt: entry.receivedAt,
                action: entry.message.action,
                bytes: entry.message.state.count,
                picture: entry.picture
            )
        }
    }

    /// Adds a message, and drops the oldest pictures and states above the limits.
    mutating func append(_ message: DebugMessage, at time: Date) {
        lastNumber += 1
        entries.append(Entry(number: lastNumber, receivedAt: time, message: message))
        bytes += message.size
        if entries.count > countLimit { dropOldestState() }
        while bytes > byteLimit { shed() }
    }

    /// Drops the oldest picture, or the oldest state if there is no picture.
    mutating func shed() {
        guard let index = entries.firstIndex(where: { $0.message.pictureSize != nil }) else { return dropOldestState() }
        bytes -= entries[index].message.size
        entries[index].message.dropPicture()
        entries[index].isPictureDropped = true
        bytes += entries[index].message.size
        droppedPictures += 1
    }

    /// Returns a state as received.
    func state(_ number: Int) throws(DebugLinkError) -> ArraySlice<UInt8> { try entry(number).message.state }

    /// Returns the message of a state whose picture is held.
    func messageWithPicture(_ number: Int) throws(DebugLinkError) -> DebugMessage {
        let entry = try entry(number)
        guard !entry.isPictureDropped else { throw .pictureDropped(state: number) }
        guard !entry.message.hasInvalidPicture else { throw .invalidPicture(state: number) }
        guard entry.message.pictureSize != nil else { throw .noPicture(state: number) }
        return entry.message
    }

    private func entry(_ number: Int) throws(DebugLinkError) -> Entry {
        guard let first = entries.first, let last = entries.last else { throw .noSuchState(number, held: nil) }
        guard let entry = entries.first(where: { $0.number == number }) else {
            throw .noSuchState(number, held: first.number...last.number)
        }
        return entry
    }

    private mutating func dropOldestState() {
        guard let first = entries.first else { return }
        bytes -= first.message.size
        entries.removeFirst()
        droppedStates += 1
    }
}
