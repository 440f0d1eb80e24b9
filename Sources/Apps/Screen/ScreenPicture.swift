import AccessControl
import Model
import Synchronization
import SystemIO

/// A picture of an app's screen, which all viewers share, with its smaller copies.
package final class ScreenPicture: Sendable {
    /// The size on the screen in pixels; the file may be smaller.
    let screen: (width: Int, height: Int)
    /// The scale that the app reported with the picture.
    let scale: Double?
    private let file: ImageFile
    private let copies = Mutex<[Int: ImageFile]>([:])
    private let turn = AsyncSemaphore(permits: 1)

    init(_ file: ImageFile, screen: (width: Int, height: Int), scale: Double?) {
        (self.file, self.screen, self.scale) = (file, screen, scale)
    }

    /// Returns the picture at about a width in pixels: the next multiple of 120. Nil is its full size.
    func copy(width: Int?, by images: ImageResizer) async throws -> ImageFile {
        guard let width else { return file }
        let rounded = ImageResizer.width(atLeast: width)
        guard rounded < file.width else { return file }
        if let copy = copies.withLock({ $0[rounded] }) { return copy }
        let permit = try await turn.acquire()
        defer { permit.release() }
        if let copy = copies.withLock({ $0[rounded] }) { return copy }
        let edge = max(rounded, rounded * file.height / file.width)
        let copy = try await images.fitted(file, to: edge, as: .jpeg)
        copies.withLock { $0[rounded] = copy }
        return copy
    }
}

/// The picture of one endpoint's screen. While viewers wait, one screenshot is in progress at most, and each begins at
/// least `interval` after the last one.
///
/// A viewer that leaves changes nothing for the others.
final class SharedScreen: Sendable {
    static let interval = Duration.milliseconds(500)
    /// The pause after a failure.
    static let failurePause = Duration.seconds(2)
    /// The time after which a viewer who returns is a new one, for the audit log.
    private static let viewerTimeout = Duration.seconds(60)
    private static let viewerLimit = 256

    /// The answer to a viewer.
    enum Answer {
        case ready(ScreenPicture)
        case failed(AppError)
        /// The screenshot in progress, which the caller has to start if `isNew`.
        case wait(Promise<ScreenPicture>, isNew: Bool)
    }

    private struct State {
        var last: (result: Result<ScreenPicture, AppError>, at: Duration)?
        var shown: ScreenPicture?
        var startedAt: Duration?
        var waiting: [Promise<ScreenPicture>] = []
        var isInProgress = false
        var viewers: [String: Duration] = [:]
        var usedAt = Duration.zero
        var tools: (ScreenTools, at: Duration)?
        var facts: (ScreenFacts, launch: SanitizedText?, width: Int, height: Int)?
    }

    private let state = Mutex(State())

    /// Returns the newest picture, or the promise of the next one.
    func picture(at now: Duration) -> Answer {
        state.withLock { state in
            state.usedAt = now
            if !state.isInProgress, let last = state.last {
                switch last.result {
                case .success(let picture):
                    if let start = state.startedAt, now - start < Self.interval { return .ready(picture) }
                case .failure(let error):
                    if now - last.at < Self.failurePause { return .failed(error) }
                }
            }
            let (promise, isNew) = (Promise<ScreenPicture>(), !state.isInProgress)
            state.waiting.append(promise)
            if isNew { (state.isInProgress, state.startedAt) = (true, now) }
            return .wait(promise, isNew: isNew)
        }
    }

    /// Ends the screenshot in progress.
    func end(_ result: Result<ScreenPicture, AppError>, at now: Duration) {
        let waiting = state.withLock { state in
            state.last = (result, now)
            if case .success(let picture) = result { state.shown = picture }
            state.isInProgress = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for viewer in waiting { viewer.complete(result.mapError { $0 as any Error }) }
    }

    /// The last picture that viewers got.
    var shown: ScreenPicture? { state.withLock { $0.shown } }

    /// Returns whether a viewer begins to look.
    func beginsToLook(_ holder: String, at now: Duration) -> Bool {
        state.withLock { state in
            let last = state.viewers[holder]
            if last == nil, state.viewers.count >= Self.viewerLimit {
                state.viewers = state.viewers.filter { now - $0.value < Self.viewerTimeout }
            }
            if state.viewers[holder] != nil || state.viewers.count < Self.viewerLimit { state.viewers[holder] = now }
            return last.map { now - $0 >= Self.viewerTimeout } ?? true
        }
    }

    /// The time of the last use.
    var usedAt: Duration { state.withLock { $0.usedAt } }
    var isInProgress: Bool { state.withLock { $0.isInProgress } }

    /// The tools, if they were found within this time.
    func tools(notBefore time: Duration) -> ScreenTools? {
        state.withLock { $0.tools.flatMap { $0.at >= time ? $0.0 : nil } }
    }

    func keep(_ tools: ScreenTools, at now: Duration) { state.withLock { $0.tools = (tools, now) } }

    /// The facts of a launch for a picture of this size.
    func facts(of launch: SanitizedText?, _ picture: ScreenPicture) -> ScreenFacts? {
        state.withLock { state in
            guard let facts = state.facts, facts.launch == launch,
                (facts.width, facts.height) == (picture.screen.width, picture.screen.height)
            else { return nil }
            return facts.0
        }
    }

    func keep(_ facts: ScreenFacts, of launch: SanitizedText?, _ picture: ScreenPicture) {
        state.withLock { $0.facts = (facts, launch, picture.screen.width, picture.screen.height) }
    }
}
