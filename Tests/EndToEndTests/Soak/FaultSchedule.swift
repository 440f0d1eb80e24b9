import TestSupport

/// A random sequence of faults of phones and usbmuxd, the same in every run with the same seed.
struct FaultSchedule {
    enum Event {
        /// Unplugs the phone with this UDID, and plugs it in again.
        case unplug(String)
        /// Kills usbmuxd, and starts it again.
        case kill
        /// Stops usbmuxd in order, and starts it again.
        case restart
        /// usbmuxd does not run for a while, and passes no byte.
        case freeze
    }

    private let rig: UsbmuxdFixture
    private let phones: [(udid: String, options: PhoneOptions)]
    private var random: SeededGenerator
    private(set) var events = 0

    init(on rig: UsbmuxdFixture, phones: [(udid: String, options: PhoneOptions)], seed: UInt64) {
        (self.rig, self.phones) = (rig, phones)
        random = SeededGenerator(seed: seed)
    }

    /// Runs faults one after the other for `length`. At the end every phone is attached and usbmuxd runs.
    mutating func run(for length: Duration) async throws {
        let all = phones.map { Event.unplug($0.udid) } + [.kill, .restart, .freeze]
        let end = ContinuousClock.now + length
        while ContinuousClock.now < end {
            try await pause(200...1_500)
            try await perform(all.randomElement(using: &random) ?? .kill)
        }
    }

    /// Runs one fault, and repairs it.
    mutating func perform(_ event: Event) async throws {
        switch event {
        case .unplug(let udid): try await unplug(udid)
        case .kill:
            try await rig.kill()
            try await pause(0...1_000)
            try await rig.start()
        case .restart:
            try await rig.stop()
            try await pause(0...1_000)
            try await rig.start()
        case .freeze:
            await rig.freeze()
            try await pause(500...3_000)
            await rig.thaw()
        }
        events += 1
    }

    private mutating func unplug(_ udid: String) async throws {
        guard let options = phones.first(where: { $0.udid == udid })?.options else { return }
        try await rig.detach(udid)
        try await pause(50...1_500)
        try await rig.attach(udid, options)
    }

    private mutating func pause(_ milliseconds: ClosedRange<Int>) async throws {
        try await Task.sleep(for: .milliseconds(Int.random(in: milliseconds, using: &random)))
    }
}
