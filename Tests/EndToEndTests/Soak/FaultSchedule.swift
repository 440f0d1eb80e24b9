import TestSupport

/// A random sequence of faults of phones and usbmuxd, the same in every run with the same seed.
struct FaultSchedule {
    private enum Event: CaseIterable {
        case unplugOne
        case unplugTwo
        case kill
        case restart
        case freeze
    }

    private let rig: UsbmuxdFixture
    private var random: SeededGenerator
    private(set) var events = 0

    init(on rig: UsbmuxdFixture, seed: UInt64) {
        self.rig = rig
        random = SeededGenerator(seed: seed)
    }

    /// Runs faults one after the other for `length`. At the end every phone is attached and usbmuxd runs.
    mutating func run(for length: Duration) async throws {
        let end = ContinuousClock.now + length
        while ContinuousClock.now < end {
            try await pause(200...1_500)
            switch Event.allCases.randomElement(using: &random) ?? .kill {
            case .unplugOne: try await unplug(Phones.one)
            case .unplugTwo: try await unplug(Phones.two)
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
    }

    private mutating func unplug(_ udid: String) async throws {
        try await rig.detach(udid)
        try await pause(50...1_500)
        try await rig.attach(udid, Phones.options(of: udid))
    }

    private mutating func pause(_ milliseconds: ClosedRange<Int>) async throws {
        try await Task.sleep(for: .milliseconds(Int.random(in: milliseconds, using: &random)))
    }
}
