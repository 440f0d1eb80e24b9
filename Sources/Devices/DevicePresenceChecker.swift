import Synchronization

/// Says of phones of one run of usbmuxd whether they are still on the cable, for streams that have ended.
///
/// usbmuxd takes a phone off its list before it closes the phone's streams (device_remove in device.c), so a list that was
/// asked for after the end of a stream tells a stream that was closed from one that was cut. When usbmuxd itself ends, so
/// does its epoch. One list answers everybody who asked before it was asked for, so that a thousand streams that end at
/// once are one question to usbmuxd, or two.
final class DevicePresenceChecker: Sendable {
    private struct Question: Sendable {
        let deviceID: UInt32
        let answer: @Sendable (Bool) -> Void
    }

    private struct State {
        var questions: [Question] = []
        var isClosed = false
    }

    private let epoch: UsbmuxdSession
    private let lister: any UsbmuxClient
    private let state = Mutex(State())
    private let wake = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(of epoch: UsbmuxdSession, asking lister: any UsbmuxClient) {
        self.epoch = epoch
        self.lister = lister
    }

    /// The answer comes once; false also where usbmuxd cannot be asked any more.
    func ask(about deviceID: UInt32, _ answer: @escaping @Sendable (Bool) -> Void) {
        let isKept =
            epoch.isAlive
            && state.withLock { state in
                if !state.isClosed { state.questions.append(Question(deviceID: deviceID, answer: answer)) }
                return !state.isClosed
            }
        if isKept { wake.continuation.yield() } else { answer(false) }
    }

    /// Answers until it is cancelled.
    func run() async {
        for await _ in wake.stream {
            let questions = take()
            let list = (try? await lister.listDevices()) ?? []
            // Only a list of this run says anything: the next one gives out the same numbers.
            let present = epoch.isAlive ? Set(list.map(\.deviceID)) : []
            for question in questions { question.answer(present.contains(question.deviceID)) }
        }
    }

    /// The run of usbmuxd is over, and every way through it.
    func close() {
        state.withLock { $0.isClosed = true }
        for question in take() { question.answer(false) }
    }

    private func take() -> [Question] {
        state.withLock { state in
            defer { state.questions = [] }
            return state.questions
        }
    }
}
