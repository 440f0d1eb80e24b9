import FoundationEssentials
package import Model
import SystemIO

/// The apps of the state debugger with their states: the shared state of all connections.
package actor DebugAppTable {
    /// The number of changes that may wait for a slow subscriber before its stream ends.
    private static let changeLimit = 256

    private struct Entry {
        var app: DebugApp
        var history: StateHistory
        /// Nil after the end of the connection.
        var sender: StateSender?

        /// Copies the numbers of the history to the description.
        mutating func update() {
            app.lastState = history.lastNumber
            app.heldBytes = history.bytes
            app.droppedPictures = history.droppedPictures
            app.droppedStates = history.droppedStates
        }
    }

    private let limits: DebugLinkLimits
    private let changes = Broadcast<DebugLinkChange>(slow: .ends(after: DebugAppTable.changeLimit))
    private var entries: [Int: Entry] = [:]
    private var lastID = 0
    /// The clients that sent no message of an app.
    package private(set) var refusals = DebugRefusals()

    init(limits: DebugLinkLimits) { self.limits = limits }

    // MARK: Reading

    /// The connected apps, and the disconnected ones with readable states, in the order of their connections.
    package var apps: [DebugApp] { entries.values.map(\.app).sorted { $0.id < $1.id } }

    /// Returns the apps now, and all changes from now on. The stream ends if it is read too slowly, and with the server.
    package func subscribe() -> (apps: [DebugApp], changes: AsyncStream<DebugLinkChange>) {
        (apps, changes.subscribe())
    }

    /// Returns the description of an app.
    func app(_ number: Int) throws(DebugLinkError) -> DebugApp { try entry(number).app }

    /// Returns the app in the place of an app whose launch ended last: this one if it has disconnected.
    func previousLaunch(of app: Int) throws(DebugLinkError) -> Int {
        let current = try entry(app).app
        guard current.isConnected else { return app }
        let earlier = apps.last { !$0.isConnected && $0.peer.host == current.peer.host && $0.place == current.place }
        guard let earlier else { throw .noPreviousLaunch }
        return earlier.id
    }

    /// Returns the descriptions of an app's held states, the oldest first.
    package func states(of app: Int) throws(DebugLinkError) -> [DebugStateSummary] { try entry(app).history.states }

    /// Returns the JSON text of a state, exactly as received.
    package func state(_ number: Int, of app: Int) throws(DebugLinkError) -> ArraySlice<UInt8> {
        try entry(app).history.state(number)
    }

    /// Returns a value inside a state.
    package nonisolated func value(
        at pointer: JSONPointer,
        inState number: Int,
        of app: Int
    ) async throws(DebugLinkError) -> JSON {
        let state = try await Self.parse(state(number, of: app))
        guard let value = pointer.value(in: state) else { throw .noSuchValue(pointer, state: number) }
        return value
    }

    /// Returns the picture of a state: a PNG file as the app sent it.
    package nonisolated func picture(ofState number: Int, of app: Int) async throws(DebugLinkError) -> [UInt8] {
        guard let picture = try await message(number, of: app).picture() else { throw .invalidPicture(state: number) }
        return picture
    }

    /// Compares two states of an app.
    package nonisolated func diff(
        fromState older: Int,
        to newer: Int,
        of app: Int
    ) async throws(DebugLinkError) -> StateDiff {
        let before = try await Self.parse(state(older, of: app))
        return StateDiff(from: before, to: try await Self.parse(state(newer, of: app)))
    }

    // MARK: Sending

    /// Sends a state that this app has sent before back to it, as one frame in the app's framing.
    ///
    /// - Throws: `DebugLinkError.noSuchState`, `.differentShape`, `.disconnected`, `.notTaken` and others;
    ///   `CancellationError`.
    package func send(state number: Int, to app: Int) async throws {
        try await send(state(number, of: app), to: app)
    }

    /// Sends a state with the shape of the app's last state. The caller is another debugger.
    func send(_ state: ArraySlice<UInt8>, to app: Int) async throws {
        let entry = try entry(app)
        guard let sender = entry.sender else { throw DebugLinkError.disconnected(app: app) }
        guard let framing = entry.app.framing, let last = entry.history.last else {
            throw DebugLinkError.noSuchState(entry.app.lastState, held: nil)
        }
        let (shape, lastShape) = (
            StateShape(of: try await Self.parse(state)), StateShape(of: try await Self.parse(last))
        )
        if let difference = shape.difference(from: lastShape) {
            throw DebugLinkError.differentShape(difference, fitting: await states(of: app, with: lastShape))
        }
        try await sender.send(framing.frame(state))
    }

    /// Returns the numbers of the held states with a shape.
    private func states(of app: Int, with shape: StateShape) async -> [Int] {
        var fitting: [Int] = []
        for number in (try? states(of: app).map(\.number)) ?? [] {
            guard let state = try? state(number, of: app), let json = try? await Self.parse(state) else { continue }
            if StateShape(of: json).difference(from: shape) == nil { fitting.append(number) }
        }
        return fitting
    }

    // MARK: Connections

    /// Adds a client that has connected.
    ///
    /// - Returns: The number of the client, which is the number of its app after its first message.
    func connect(_ peer: SocketAddress, sender: StateSender) throws(DebugLinkError) -> Int {
        guard entries.values.count(where: \.app.isConnected) < limits.apps else {
            let failure = DebugLinkError.tooManyApps(limit: limits.apps)
            refusals.add(peer, because: "\(failure)")
            throw failure
        }
        lastID += 1
        let app = DebugApp(id: lastID, peer: peer, connectedAt: Date())
        let history = StateHistory(countLimit: limits.states, byteLimit: limits.bytesPerApp)
        entries[lastID] = Entry(app: app, history: history, sender: sender)
        changes.send(.connected(app))
        return lastID
    }

    /// Adds a message of a connected app.
    ///
    /// - Returns: True if it is the first one.
    func receive(_ message: DebugMessage, in framing: DebugFraming, from app: Int) -> Bool {
        guard var entry = entries[app] else { return false }
        let isFirst = entry.app.place == nil
        if isFirst { entry.app.place = freePlace(at: entry.app.peer.host) }
        entries[app] = nil  // The history has one owner, so the change does not copy it.
        entry.history.append(message, at: Date())
        entry.app.framing = framing
        entry.update()
        entries[app] = entry
        shed()
        if let app = entries[app]?.app {
            if isFirst { changes.send(.identified(app)) }
            changes.send(.received(app))
        }
        return isFirst
    }

    /// Returns the lowest number that no connected app of a machine has.
    private func freePlace(at address: String) -> Int {
        let taken = entries.values.map(\.app).filter { $0.isConnected && $0.peer.host == address }.compactMap(\.place)
        return (1...limits.apps).first { !taken.contains($0) } ?? 1
    }

    /// Records why the current frame of an app does not end; nil if the app has continued.
    ///
    /// - Returns: False if the client has sent no message, and so is no app.
    @discardableResult func setStall(_ stall: String?, of app: Int) -> Bool {
        guard entries[app]?.app.place != nil else { return false }
        entries[app]?.app.stall = stall
        if let app = entries[app]?.app { changes.send(.stalled(app)) }
        return true
    }

    /// Records whether another debugger gets the frames of an app.
    func setForwarded(_ isForwarded: Bool, _ app: Int) { entries[app]?.app.isForwarded = isForwarded }

    /// Marks an app as disconnected.
    ///
    /// - Parameters:
    ///   - app: The number of the app.
    ///   - failure: The reason; nil for a normal end.
    /// - Returns: The end as it is to be logged.
    func disconnect(_ app: Int, because failure: String?) -> DebugConnectionEnd {
        guard var entry = entries[app] else { return .unused }
        entry.sender = nil
        entry.app.stall = nil
        entry.app.isForwarded = false
        (entry.app.isConnected, entry.app.failure) = (false, failure)
        let isApp = entry.app.place != nil
        entries[app] = isApp ? entry : nil
        changes.send(.disconnected(entry.app))
        let disconnected = entries.keys.filter { entries[$0]?.app.isConnected == false }.sorted()
        for id in disconnected.dropLast(limits.disconnectedApps) { entries[id] = nil }
        if isApp { return .disconnect(failure) }
        guard let failure else { return .unused }
        return refusals.add(entry.app.peer, because: failure) ? .refusal(failure) : .repeatedRefusal
    }

    /// Ends the streams of all subscribers.
    func finish() { changes.finish() }

    /// Drops the oldest pictures and states of the app that needs the most memory, until all apps are within the limit.
    private func shed() {
        var total = entries.values.reduce(0) { $0 + $1.history.bytes }
        while total > limits.bytes, let id = entries.max(by: { $0.value.history.bytes < $1.value.history.bytes })?.key {
            total -= entries[id]?.history.bytes ?? 0
            entries[id]?.history.shed()
            entries[id]?.update()
            total += entries[id]?.history.bytes ?? 0
        }
    }

    private func entry(_ app: Int) throws(DebugLinkError) -> Entry {
        guard let entry = entries[app] else { throw .noSuchApp(app) }
        return entry
    }

    private func message(_ number: Int, of app: Int) throws(DebugLinkError) -> DebugMessage {
        try entry(app).history.messageWithPicture(number)
    }

    private static func parse(_ state: ArraySlice<UInt8>) async throws(DebugLinkError) -> JSON {
        do throws(JSONError) { return try await JSON.parse(state, maxDepth: JSON.maxResultDepth) } catch {
            throw .invalidState(error)
        }
    }
}
